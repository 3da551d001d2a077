/* cooperative_groups/memcpy_async.h has a group copy to shared memory together, and wait for it. */
#ifndef RINGO_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define RINGO_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include "../cooperative_groups.h"
#include "../ringo_copy.h"

#ifdef __CUDA__
namespace cooperative_groups {

template <class G, class T, size_t A> RINGO_D void memcpy_async(const G &group, T *to, const T *from, cuda::aligned_size_t<A> n)
{
	ringo_copy<A>(to, from, n, group.thread_rank(), group.num_threads());
	ringo_copies_commit();
}
template <class G, class T> RINGO_D void memcpy_async(const G &group, T *to, const T *from, size_t n)
{
	memcpy_async(group, to, from, cuda::aligned_size_t<alignof(T)>(n));
}
template <class G> RINGO_D void wait(const G &group)
{
	ringo_copies_wait<0>();
	group.sync();
}
template <unsigned N, class G> RINGO_D void wait_prior(const G &group)
{
	ringo_copies_wait<N>();
	group.sync();
}

} // namespace cooperative_groups
#endif

#endif
