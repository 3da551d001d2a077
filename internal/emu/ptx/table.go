package ptx

// The table says for each instruction which modifiers it takes in which order,
// what its operands are, and which PTX version and architecture it needs.
//
// A line is name, modifiers, operands. "@7.0/80" after a name or a modifier
// says that it needs PTX 7.0 and sm_80. Modifiers are separated by spaces,
// alternatives by commas; ? marks what may be missing; words in capitals stand
// for the lists in modifierLists. An instruction with several lines is of the
// first that fits.
//
// Operands, separated by spaces:
//
//	d  destination register              D  the same, or a vector of .v2 and .v4; may be wider
//	s  source: register or constant      S  the same, or a vector; may be wider
//	P  destination predicate, or p|q     q  source predicate, or its negation
//	e  destination, or d|p with a predicate
//	m  memory: [address]                 i  integer constant
//	b  number of a barrier               n  number of threads
//	M  what mov takes and packs          V  what mov gives and unpacks
//	l  label                             t  table of labels
//	F  registers with a fragment of a matrix, which stands behind the colon
//	x  anything
//
// Behind a colon stands a type where it is not the instruction's first: a name,
// "1" for the second, "wide" for twice the first. ? marks what may be missing.
//
// Source: PTX ISA 8.0, chapter 9; the versions are in each instruction's notes.
var table = [][3]string{
	// Integers.
	{"add", "INT", "d s s"}, {"add", "sat s32", "d s s"}, {"add", "cc CARRY", "d s s"}, {"addc", "?cc CARRY", "d s s"},
	{"sub", "INTS", "d s s"}, {"sub", "sat s32", "d s s"}, {"sub", "cc CARRY", "d s s"}, {"subc", "?cc CARRY", "d s s"},
	{"mul", "hi,lo INTS", "d s s"}, {"mul", "wide WIDE", "d:wide s s"},
	{"mad", "hi,lo INTS", "d s s s"}, {"mad", "wide WIDE", "d:wide s s s:wide"}, {"mad", "hi sat s32", "d s s s"},
	{"mad", "hi,lo cc CARRY", "d s s s"}, {"madc", "hi,lo ?cc CARRY", "d s s s"},
	{"mul24", "hi,lo u32,s32", "d s s"}, {"mad24", "hi,lo u32,s32", "d s s s"},
	{"mad24", "hi sat s32", "d s s s"},
	{"sad", "INTS", "d s s s"}, {"div", "INTS", "d s s"}, {"rem", "INTS", "d s s"},
	{"abs", "s16,s32,s64", "d s"}, {"neg", "s16,s32,s64", "d s"},
	{"min", "INT", "d s s"}, {"max", "INT", "d s s"},
	{"min", "relu@8.0/90 s16x2,s32", "d s s"}, {"max", "relu@8.0/90 s16x2,s32", "d s s"},
	{"popc", "b32,b64", "d:u32 s"}, {"clz", "b32,b64", "d:u32 s"}, {"brev", "b32,b64", "d s"},
	{"bfind", "?shiftamt u32,u64,s32,s64", "d:u32 s"}, {"fns@6.0/30", "b32", "d s s:u32 s:s32"},
	{"bfe", "u32,u64,s32,s64", "d s s:u32 s:u32"}, {"bfi", "b32,b64", "d s s s:u32 s:u32"},
	{"szext@7.6/70", "clamp,wrap u32,s32", "d s s:u32"}, {"bmsk@7.6/70", "clamp,wrap b32", "d s:u32 s:u32"},
	{"dp4a@5.0/61", "u32,s32 u32,s32", "d:s32 s s:1 s:s32"}, {"dp2a@5.0/61", "lo,hi u32,s32 u32,s32", "d:s32 s s:1 s:s32"},

	// Floating point.
	{"testp", "finite,infinite,number,notanumber,normal,subnormal f32,f64", "P s"}, {"copysign", "f32,f64", "d s s"},
	{"add", "?RND ?ftz ?sat f32", "d s s"}, {"add", "?RND f64", "d s s"}, {"add", "?rn ?ftz ?sat HALF", "d s s"},
	{"add", "?rn BHALF", "d s s"},
	{"sub", "?RND ?ftz ?sat f32", "d s s"}, {"sub", "?RND f64", "d s s"}, {"sub", "?rn ?ftz ?sat HALF", "d s s"},
	{"sub", "?rn BHALF", "d s s"},
	{"mul", "?RND ?ftz ?sat f32", "d s s"}, {"mul", "?RND f64", "d s s"}, {"mul", "?rn ?ftz ?sat HALF", "d s s"},
	{"mul", "?rn BHALF", "d s s"},
	{"fma", "RND ?ftz ?sat f32", "d s s s"}, {"fma", "RND f64", "d s s s"}, {"fma", "rn ?ftz ?sat HALF", "d s s s"},
	{"fma", "rn ?ftz relu@7.0/80 HALF", "d s s s"}, {"fma@7.0/80", "rn ?relu bf16,bf16x2", "d s s s"},
	{"mad", "RND ?ftz ?sat f32", "d s s s"}, {"mad", "RND f64", "d s s s"},
	{"div", "approx,full ?ftz f32", "d s s"}, {"div", "RND ?ftz f32", "d s s"}, {"div", "RND f64", "d s s"},
	{"rcp", "approx ?ftz f32", "d s"}, {"rcp", "RND ?ftz f32", "d s"}, {"rcp", "RND f64", "d s"},
	{"rcp", "approx ftz f64", "d s"},
	{"sqrt", "approx ?ftz f32", "d s"}, {"sqrt", "RND ?ftz f32", "d s"}, {"sqrt", "RND f64", "d s"},
	{"rsqrt", "approx ?ftz f32", "d s"}, {"rsqrt", "approx ?ftz@4.0/20 f64", "d s"},
	{"sin", "approx ?ftz f32", "d s"}, {"cos", "approx ?ftz f32", "d s"}, {"lg2", "approx ?ftz f32", "d s"},
	{"ex2", "approx ?ftz f32,f16@7.0/75,f16x2@7.0/75", "d s"}, {"ex2@7.8/90", "approx ftz bf16,bf16x2", "d s"},
	{"tanh", "approx f32@7.0/75,f16@7.0/75,f16x2@7.0/75,bf16@7.8/90,bf16x2@7.8/90", "d s"},
	{"abs", "?ftz f32", "d s"}, {"abs", "f64", "d s"}, {"abs", "?ftz f16@6.5/53,f16x2@6.5/53", "d s"},
	{"abs@7.0/80", "bf16,bf16x2", "d s"},
	{"neg", "?ftz f32", "d s"}, {"neg", "f64", "d s"}, {"neg", "?ftz f16@6.0/53,f16x2@6.0/53", "d s"},
	{"neg@7.0/80", "bf16,bf16x2", "d s"},
	{"min", "?ftz ?NaN@7.0/80 ?xorsign@7.2/86 ?abs@7.2/86 f32", "d s s"}, {"min", "f64", "d s s"},
	{"min@7.0/80", "?ftz ?NaN ?xorsign@7.2/86 ?abs f16,f16x2", "d s s"},
	{"min@7.0/80", "?NaN ?xorsign@7.2/86 ?abs bf16,bf16x2", "d s s"},
	{"max", "?ftz ?NaN@7.0/80 ?xorsign@7.2/86 ?abs@7.2/86 f32", "d s s"}, {"max", "f64", "d s s"},
	{"max@7.0/80", "?ftz ?NaN ?xorsign@7.2/86 ?abs f16,f16x2", "d s s"},
	{"max@7.0/80", "?NaN ?xorsign@7.2/86 ?abs bf16,bf16x2", "d s s"},

	// Comparisons and choices.
	{"setp", "EQ b16,b32,b64", "P s s"}, {"setp", "EQ BOOL b16,b32,b64", "P s s q"},
	{"setp", "UCMP u16,u32,u64", "P s s"}, {"setp", "UCMP BOOL u16,u32,u64", "P s s q"},
	{"setp", "ICMP s16,s32,s64", "P s s"}, {"setp", "ICMP BOOL s16,s32,s64", "P s s q"},
	{"setp", "FCMP ?ftz f32,f16@4.2/53,f16x2@4.2/53", "P s s"},
	{"setp", "FCMP BOOL ?ftz f32,f16@4.2/53,f16x2@4.2/53", "P s s q"},
	{"setp", "FCMP f64,bf16@7.8/90,bf16x2@7.8/90", "P s s"},
	{"setp", "FCMP BOOL f64,bf16@7.8/90,bf16x2@7.8/90", "P s s q"},
	{"set", "EQ SETD b16,b32,b64", "d s:1 s:1"}, {"set", "EQ BOOL SETD b16,b32,b64", "d s:1 s:1 q"},
	{"set", "UCMP SETD u16,u32,u64", "d s:1 s:1"}, {"set", "UCMP BOOL SETD u16,u32,u64", "d s:1 s:1 q"},
	{"set", "ICMP SETD s16,s32,s64", "d s:1 s:1"}, {"set", "ICMP BOOL SETD s16,s32,s64", "d s:1 s:1 q"},
	{"set", "FCMP ?ftz SETD f32,f64,HALF,BHALF", "d s:1 s:1"},
	{"set", "FCMP BOOL ?ftz SETD f32,f64,HALF,BHALF", "d s:1 s:1 q"},
	{"selp", "b16,b32,b64,f32,f64,INTS", "d s s q"},
	{"slct", "b16,b32,b64,f32,f64,INTS s32", "d s s s:s32"}, {"slct", "?ftz b16,b32,b64,f32,f64,INTS f32", "d s s s:f32"},

	// Bits.
	{"and", "pred,b16,b32,b64", "d s s"}, {"or", "pred,b16,b32,b64", "d s s"}, {"xor", "pred,b16,b32,b64", "d s s"},
	{"not", "pred,b16,b32,b64", "d s"}, {"cnot", "b16,b32,b64", "d s"}, {"lop3@4.3/50", "b32", "d s s s i"},
	{"shf@3.1/32", "l,r clamp,wrap b32", "d s s s:u32"},
	{"shl", "b16,b32,b64", "d s s:u32"}, {"shr", "b16,b32,b64,INTS", "d s s:u32"},
	{"prmt", "b32 ?f4e,b4e,rc8,ecl,ecr,rc16", "d s s s"},

	// Moves and conversions.
	{"mov", "pred", "d s"}, {"mov", "b16,b32,b64,b128@8.3/70", "V M"}, {"mov", "INTS,f32,f64", "V M"},
	{"cvta", "SPACE u32,u64", "V M"}, {"cvta", "to SPACE u32,u64", "d s"},
	{"isspacep", "global,local,shared,const@3.1,shared::cta@7.8,shared::cluster@7.8/90", "P s:addr"},
	{"cvt", "?IRND ?ftz ?sat NUMBER NUMBER", "D S:1"}, {"cvt", "?rn,rz,rm,rp ?ftz ?sat NUMBER NUMBER", "D S:1"},
	{"cvt@7.0/80", "rn,rz relu f16,bf16 f32", "d s:f32"}, {"cvt@7.0/80", "rn,rz ?relu f16x2,bf16x2 f32", "d s:f32 s:f32"},
	{"cvt@8.1/80", "rn,rz ?relu satfinite f16,bf16 f32", "d s:f32"},
	{"cvt@8.1/80", "rn,rz ?relu satfinite f16x2,bf16x2 f32", "d s:f32 s:f32"},
	{"cvt@7.0/80", "rna ?satfinite@8.1/80 tf32 f32", "d s:f32"}, {"cvt@7.8/90", "rn,rz ?relu tf32 f32", "d s:f32"},
	{"cvt@7.8/89", "rn satfinite ?relu e4m3x2,e5m2x2 f32", "d s:f32 s:f32"},
	{"cvt@7.8/89", "rn satfinite ?relu e4m3x2,e5m2x2 f16x2", "d s:f16x2"},
	{"cvt@7.8/89", "rn ?relu f16x2 e4m3x2,e5m2x2", "d s:1"},
	{"cvt@6.5/72", "pack sat u16,s16 s32", "d:b32 s:s32 s:s32"},
	{"cvt@6.5/72", "pack sat u8,s8 s32 b32", "d:b32 s:s32 s:s32 s:b32"},

	// Memory.
	{"ld", "?weak ?SPACE ?CACHED ?EVICT@7.4/70 ?AHEAD@7.4/75 ?v2,v4 MEMORY", "D m"},
	{"ld", "global ?ca,cg,cs nc ?EVICT@7.4/70 ?AHEAD@7.4/75 ?v2,v4 MEMORY", "D m"},
	{"ld", "volatile ?WRITABLE ?v2,v4 MEMORY", "D m"},
	{"ld@6.0/70", "relaxed,acquire SCOPE ?SHAREABLE ?EVICT@7.4/70 ?AHEAD@7.4/75 ?v2,v4 MEMORY", "D m"},
	{"ld@8.2/70", "mmio relaxed sys ?global MEMORY", "D m"},
	{"ldu", "?global ?v2,v4 MEMORY", "D m"},
	{"st", "?weak ?WRITABLE ?wb,cg,cs,wt ?EVICT@7.4/70 ?v2,v4 MEMORY", "m S"},
	{"st", "volatile ?WRITABLE ?v2,v4 MEMORY", "m S"},
	{"st@6.0/70", "relaxed,release SCOPE ?SHAREABLE ?EVICT@7.4/70 ?v2,v4 MEMORY", "m S"},
	{"st@8.2/70", "mmio relaxed sys ?global MEMORY", "m S"},
	{"st@8.1/90", "async ?weak ?shared::cluster mbarrier::complete_tx::bytes ?v2,v4 b32,b64,u32,u64,s32,s64,f32,f64",
		"m S m"},
	{"atom", "?SEM ?SCOPE60 ?SHAREABLE and,or,xor b32,b64", "d m s"},
	{"atom", "?SEM ?SCOPE60 ?SHAREABLE exch b32,b64,b128@8.3/90", "d m s"},
	{"atom", "?SEM ?SCOPE60 ?SHAREABLE cas b32,b64,b16@6.3/70,b128@8.3/90", "d m s s"},
	{"atom", "?SEM ?SCOPE60 ?SHAREABLE inc,dec u32", "d m s"},
	{"atom", "?SEM ?SCOPE60 ?SHAREABLE add u32,s32,u64,f32,f64@5.0/60", "d m s"},
	{"atom", "?SEM ?SCOPE60 ?SHAREABLE min,max u32,s32,u64,s64", "d m s"},
	{"atom", "?SEM ?SCOPE60 ?SHAREABLE add noftz f16@6.3/70,f16x2@6.2/60,bf16@7.8/90,bf16x2@7.8/90", "d m s"},
	{"atom@8.1/90", "?SEM ?SCOPE60 ?global add v2,v4 f32", "D m S"},
	{"atom@8.1/90", "?SEM ?SCOPE60 ?global add,min,max noftz v2,v4,v8 f16,bf16", "D m S"},
	{"atom@8.1/90", "?SEM ?SCOPE60 ?global add,min,max noftz v2,v4 f16x2,bf16x2", "D m S"},
	{"red", "?relaxed@6.0/70,release@6.0/70 ?SCOPE60 ?SHAREABLE and,or,xor b32,b64", "m s"},
	{"red", "?relaxed@6.0/70,release@6.0/70 ?SCOPE60 ?SHAREABLE inc,dec u32", "m s"},
	{"red", "?relaxed@6.0/70,release@6.0/70 ?SCOPE60 ?SHAREABLE add u32,s32,u64,f32,f64@5.0/60", "m s"},
	{"red", "?relaxed@6.0/70,release@6.0/70 ?SCOPE60 ?SHAREABLE min,max u32,s32,u64,s64", "m s"},
	{"red", "?relaxed@6.0/70,release@6.0/70 ?SCOPE60 ?SHAREABLE add noftz " +
		"f16@6.3/70,f16x2@6.2/60,bf16@7.8/90,bf16x2@7.8/90", "m s"},
	{"red@8.1/90", "?relaxed,release ?SCOPE60 ?global add v2,v4 f32", "m S"},
	{"red@8.1/90", "?relaxed,release ?SCOPE60 ?global add,min,max noftz v2,v4,v8 f16,bf16", "m S"},
	{"red@8.1/90", "?relaxed,release ?SCOPE60 ?global add,min,max noftz v2,v4 f16x2,bf16x2", "m S"},
	{"red@8.1/90", "async ?relaxed ?cluster ?shared::cluster mbarrier::complete_tx::bytes inc,dec u32", "m s m"},
	{"red@8.1/90", "async ?relaxed ?cluster ?shared::cluster mbarrier::complete_tx::bytes add u32,s32,u64", "m s m"},
	{"red@8.1/90", "async ?relaxed ?cluster ?shared::cluster mbarrier::complete_tx::bytes min,max u32,s32", "m s m"},
	{"red@8.1/90", "async ?relaxed ?cluster ?shared::cluster mbarrier::complete_tx::bytes and,or,xor b32", "m s m"},
	{"prefetch", "?global,local L1,L2", "m"}, {"prefetch@7.4/80", "global L2::evict_last,L2::evict_normal", "m"},
	{"prefetchu", "L1", "m"},
	{"applypriority@7.4/80", "?global L2::evict_normal", "m i"}, {"discard@7.4/80", "?global L2", "m i"},
	{"createpolicy@7.4/80", "fractional POLICY ?L2::evict_first,L2::evict_unchanged b64", "d s:f32?"},
	{"fence@6.0/70", "?sc,acq_rel cta,gpu,sys,cluster@7.8/90", ""},
	{"fence@8.6/70", "acquire,release cta,gpu,sys,cluster@7.8/90", ""}, {"fence@7.5/70", "proxy alias", ""},
	{"fence@8.0/90", "proxy async ?global,shared::cta,shared::cluster", ""},
	{"fence@8.0/90", "mbarrier_init release cluster", ""},
	{"membar", "cta,gl,sys", ""}, {"membar@7.5/70", "proxy alias", ""},
	{"mapa@7.8/90", "?shared::cluster u32,u64", "d s s:u32"}, {"getctarank@7.8/90", "?shared::cluster u32,u64", "d:u32 s"},

	// Asynchronous copies and their barriers.
	{"cp@7.0/80", "async ca ?shared,shared::cta@7.8 global ?AHEAD@7.4/80", "m m i s:u32?"},
	{"cp@7.0/80", "async cg ?shared,shared::cta@7.8 global ?AHEAD@7.4/80", "m m i s:u32?"},
	{"cp@7.4/80", "async ca,cg ?shared,shared::cta@7.8 global L2::cache_hint ?AHEAD", "m m i s:u32? s:u64"},
	{"cp@7.0/80", "async commit_group", ""}, {"cp@7.0/80", "async wait_group", "i"}, {"cp@7.0/80", "async wait_all", ""},
	{"cp@7.0/80", "async mbarrier arrive ?noinc ?shared,shared::cta@7.8 b64", "m"},
	{"cp@8.0/90", "async bulk BULKTO global mbarrier::complete_tx::bytes ?L2::cache_hint", "m m s:u32 m s:u64?"},
	{"cp@8.0/90", "async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster ?L2::cache_hint",
		"m m s:u32 m s:u16 s:u64?"},
	{"cp@8.0/90", "async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes", "m m s:u32 m"},
	{"cp@8.0/90", "async bulk global shared::cta bulk_group ?L2::cache_hint", "m m s:u32 s:u64?"},
	{"cp@8.0/90", "async bulk prefetch L2 global ?L2::cache_hint", "m s:u32 s:u64?"},
	{"cp@8.0/90", "async bulk commit_group", ""}, {"cp@8.0/90", "async bulk wait_group ?read", "i"},
	{"cp@8.0/90", "reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes add u32,s32,u64",
		"m m s:u32 m"},
	{"cp@8.0/90", "reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes min,max u32,s32",
		"m m s:u32 m"},
	{"cp@8.0/90", "reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes inc,dec u32",
		"m m s:u32 m"},
	{"cp@8.0/90", "reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes and,or,xor b32",
		"m m s:u32 m"},
	{"cp@8.0/90", "reduce async bulk global shared::cta bulk_group ?L2::cache_hint add u32,s32,u64,f32,f64",
		"m m s:u32 s:u64?"}, {"cp@8.0/90",
		"reduce async bulk global shared::cta bulk_group ?L2::cache_hint add noftz f16,bf16", "m m s:u32 s:u64?"},
	{"cp@8.0/90", "reduce async bulk global shared::cta bulk_group ?L2::cache_hint min,max u32,s32,u64,s64,f16,bf16",
		"m m s:u32 s:u64?"}, {"cp@8.0/90", "reduce async bulk global shared::cta bulk_group ?L2::cache_hint inc,dec u32",
		"m m s:u32 s:u64?"},
	{"cp@8.0/90", "reduce async bulk global shared::cta bulk_group ?L2::cache_hint and,or,xor b32,b64",
		"m m s:u32 s:u64?"},
	{"mbarrier@7.0/80", "init ?SHARED b64", "m s:u32"}, {"mbarrier@7.0/80", "inval ?SHARED b64", "m"},
	{"mbarrier@7.0/80", "arrive ?release,relaxed ?cta,cluster ?SHARED b64", "d m s:u32?"},
	{"mbarrier@7.0/80", "arrive noComplete ?release ?cta ?SHARED b64", "d m s:u32"},
	{"mbarrier@7.0/80", "arrive_drop ?release,relaxed ?cta,cluster ?SHARED b64", "d m s:u32?"},
	{"mbarrier@7.0/80", "arrive_drop noComplete ?release ?cta ?SHARED b64", "d m s:u32"},
	{"mbarrier@8.0/90", "arrive expect_tx ?release,relaxed ?cta,cluster ?SHARED b64", "d m s:u32"},
	{"mbarrier@8.0/90", "expect_tx,complete_tx ?relaxed ?cta,cluster ?SHARED b64", "m s:u32"},
	{"mbarrier@7.0/80", "test_wait ?acquire,relaxed ?cta,cluster ?SHARED b64", "P m s"},
	{"mbarrier@7.1/80", "test_wait parity ?acquire,relaxed ?cta,cluster ?SHARED b64", "P m s:u32"},
	{"mbarrier@7.8/90", "try_wait ?acquire,relaxed ?cta,cluster ?SHARED b64", "P m s s:u32?"},
	{"mbarrier@7.8/90", "try_wait parity ?acquire,relaxed ?cta,cluster ?SHARED b64", "P m s:u32 s:u32?"},
	{"mbarrier@7.0/80", "pending_count b64", "d:u32 s"},

	// Threads together.
	{"bar", "?cta@7.8 sync", "b n?"}, {"bar", "?cta@7.8 arrive", "b n"},
	{"bar", "?cta@7.8 red popc u32", "d b n? q"}, {"bar", "?cta@7.8 red and,or pred", "P b n? q"},
	{"bar@6.0/30", "warp sync", "s:u32"},
	{"barrier@6.0/30", "?cta@7.8 sync ?aligned", "b n?"}, {"barrier@6.0/30", "?cta@7.8 arrive ?aligned", "b n"},
	{"barrier@6.0/30", "?cta@7.8 red ?aligned popc u32", "d b n? q"},
	{"barrier@6.0/30", "?cta@7.8 red ?aligned and,or pred", "P b n? q"},
	{"barrier@7.8/90", "cluster arrive ?release@8.0,relaxed@8.0 ?aligned", ""},
	{"barrier@7.8/90", "cluster wait ?acquire@8.0 ?aligned", ""},
	{"shfl@6.0/30", "sync up,down,bfly,idx b32", "e s s:u32 s:u32 s:u32"},
	{"vote@6.0/30", "sync all,any,uni pred", "P q s:u32"}, {"vote@6.0/30", "sync ballot b32", "d q s:u32"},
	{"match@6.0/70", "any sync b32,b64", "d:b32 s s:u32"}, {"match@6.0/70", "all sync b32,b64", "e:b32 s s:u32"},
	{"activemask@6.2/30", "b32", "d"}, {"redux@7.0/80", "sync add,min,max u32,s32", "d s s:u32"},
	{"redux@7.0/80", "sync and,or,xor b32", "d s s:u32"},
	{"elect@8.0/90", "sync", "e:b32 s:u32"}, {"griddepcontrol@7.8/90", "launch_dependents,wait", ""},

	// Matrices.
	{"mma@6.5/75", "sync aligned m16n8k8 row col f16 f16 f16 f16", "F:D F:A F:B F:C"},
	{"mma@6.5/75", "sync aligned m16n8k8 row col f32 f16 f16 f32", "F:D F:A F:B F:C"},
	{"mma@7.0/80", "sync aligned m16n8k16 row col f16 f16 f16 f16", "F:D F:A F:B F:C"},
	{"mma@7.0/80", "sync aligned m16n8k16 row col f32 f16 f16 f32", "F:D F:A F:B F:C"},
	{"mma@7.0/80", "sync aligned m16n8k8,m16n8k16 row col f32 bf16 bf16 f32", "F:D F:A F:B F:C"},
	{"mma@7.0/80", "sync aligned m16n8k4,m16n8k8 row col f32 tf32 tf32 f32", "F:D F:A F:B F:C"},
	{"mma@8.4/89", "sync aligned m16n8k16@8.7,m16n8k32 row col f32 e4m3,e5m2 e4m3,e5m2 f32", "F:D F:A F:B F:C"},
	{"mma@8.7/89", "sync aligned m16n8k16,m16n8k32 row col f16 e4m3,e5m2 e4m3,e5m2 f16", "F:D F:A F:B F:C"},
	{"mma@6.5/75", "sync aligned m8n8k16 row col ?satfinite s32 u8,s8 u8,s8 s32", "F:D F:A F:B F:C"},
	{"mma@7.0/80", "sync aligned m16n8k16,m16n8k32 row col ?satfinite s32 u8,s8 u8,s8 s32", "F:D F:A F:B F:C"},
	{"mma@7.0/80", "sync aligned m8n8k4 row col f64 f64 f64 f64", "F:D F:A F:B F:C"},
	{"mma@7.8/90", "sync aligned m16n8k4,m16n8k8,m16n8k16 row col f64 f64 f64 f64", "F:D F:A F:B F:C"},
	{"wmma@6.0/70", "load a sync aligned row,col TILE ?TILED f16,bf16@7.0/80,u8@6.3/72,s8@6.3/72", "F:A m s:u32?"},
	{"wmma@6.0/70", "load b sync aligned row,col TILE ?TILED f16,bf16@7.0/80,u8@6.3/72,s8@6.3/72", "F:B m s:u32?"},
	{"wmma@6.0/70", "load c sync aligned row,col TILE ?TILED f16,f32,s32@6.3/72", "F:C m s:u32?"},
	{"wmma@6.0/70", "store d sync aligned row,col TILE ?TILED f16,f32,s32@6.3/72", "m F:D s:u32?"},
	{"wmma@6.0/70", "mma sync aligned row,col row,col TILE f16,f32 f16,f32", "F:D F:A F:B F:C"},
	{"wmma@7.0/80", "mma sync aligned row,col row,col TILE f32 bf16 bf16 f32", "F:D F:A F:B F:C"},
	{"wmma@6.3/72", "mma sync aligned row,col row,col TILE s32 u8 u8 s32 ?satfinite", "F:D F:A F:B F:C"},
	{"wmma@6.3/72", "mma sync aligned row,col row,col TILE s32 s8 s8 s32 ?satfinite", "F:D F:A F:B F:C"},
	{"wmma@7.0/80", "load a sync aligned row,col m16n16k8 ?TILED tf32", "F:A m s:u32?"},
	{"wmma@7.0/80", "load b sync aligned row,col m16n16k8 ?TILED tf32", "F:B m s:u32?"},
	{"wmma@7.0/80", "load c sync aligned row,col m16n16k8 ?TILED f32", "F:C m s:u32?"},
	{"wmma@7.0/80", "store d sync aligned row,col m16n16k8 ?TILED f32", "m F:D s:u32?"},
	{"wmma@7.0/80", "mma sync aligned row,col row,col m16n16k8 f32 tf32 tf32 f32", "F:D F:A F:B F:C"},
	{"wmma@7.0/80", "load a sync aligned row,col m8n8k4 ?TILED f64", "F:A m s:u32?"},
	{"wmma@7.0/80", "load b sync aligned row,col m8n8k4 ?TILED f64", "F:B m s:u32?"},
	{"wmma@7.0/80", "load c sync aligned row,col m8n8k4 ?TILED f64", "F:C m s:u32?"},
	{"wmma@7.0/80", "store d sync aligned row,col m8n8k4 ?TILED f64", "m F:D s:u32?"},
	{"wmma@7.0/80", "mma sync aligned row,col row,col m8n8k4 f64 f64 f64 f64", "F:D F:A F:B F:C"},
	{"ldmatrix@6.5/75", "sync aligned m8n8 x1,x2,x4 ?trans ?shared,shared::cta@7.8 b16", "F:M m"},
	{"stmatrix@7.8/90", "sync aligned m8n8 x1,x2,x4 ?trans ?shared,shared::cta b16", "m F:M"},
	{"movmatrix@7.8/75", "sync aligned m8n8 trans b16", "d:b32 s:b32"},

	// Control.
	{"bra", "?uni", "l"}, {"brx@6.0/30", "idx ?uni", "s:u32 t"}, {"call", "?uni", "x x x"}, {"ret", "?uni", ""},
	{"exit", "", ""},
	{"trap", "", ""}, {"brkpt", "", ""}, {"nanosleep@6.3/70", "u32", "s"}, {"pmevent", "?mask", "i"},
	{"setmaxnreg@8.0/90a", "inc,dec sync aligned u32", "i"},
}

// modifierLists are what the words in capitals in the table stand for.
var modifierLists = map[string]string{
	"INTS":   "u16,u32,u64,s16,s32,s64",
	"INT":    "u16,u32,u64,s16,s32,s64,u16x2@8.0/90,s16x2@8.0/90",
	"WIDE":   "u16,u32,s16,s32",
	"CARRY":  "u32,s32,u64@4.3,s64@4.3",
	"HALF":   "f16@4.2/53,f16x2@4.2/53",
	"BHALF":  "bf16@7.8/90,bf16x2@7.8/90",
	"NUMBER": "u8,u16,u32,u64,s8,s16,s32,s64,f16,f32,f64,bf16@7.1/80",
	"MEMORY": "b8,b16,b32,b64,b128@8.3/70,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64",
	"SETD":   "u32,s32,f32,u16,s16,f16@6.0/53,f16x2@6.0/53,bf16@7.8/90,bf16x2@7.8/90",

	"RND":  "rn,rz,rm,rp",
	"IRND": "rni,rzi,rmi,rpi",
	"EQ":   "eq,ne",
	"ICMP": "eq,ne,lt,le,gt,ge",
	"UCMP": "eq,ne,lt,le,gt,ge,lo,ls,hi,hs",
	"FCMP": "eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan",
	"BOOL": "and,or,xor",

	"SPACE":     "global,shared,local,const,param,shared::cta@7.8/30,shared::cluster@7.8/90,param::entry@8.3,param::func@8.3",
	"WRITABLE":  "global,shared,local,param,shared::cta@7.8/30,shared::cluster@7.8/90,param::func@8.3",
	"SHAREABLE": "global,shared,shared::cta@7.8/30,shared::cluster@7.8/90",
	"BULKTO":    "shared::cluster,shared::cta@8.6",
	"SHARED":    "shared,shared::cta@7.8,shared::cluster@7.8/90",
	"SCOPE":     "cta,gpu,sys,cluster@7.8/90",
	"TILE":      "m16n16k16,m32n8k16@6.1,m8n32k16@6.1",
	"TILED":     "global,shared,shared::cta@7.8",
	"SCOPE60":   "cta@5.0/60,gpu@5.0/60,sys@5.0/60,cluster@7.8/90",
	"SEM":       "relaxed@6.0/70,acquire@6.0/70,release@6.0/70,acq_rel@6.0/70",
	"CACHED":    "ca,cg,cs,lu,cv",
	"EVICT":     "L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate",
	"POLICY":    "L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged",
	"AHEAD":     "L2::64B,L2::128B,L2::256B@7.4/80",
}

// specials are the special registers, with their types and needs.
var specials = map[string]special{
	"%tid.x": {U32, need{}}, "%tid.y": {U32, need{}}, "%tid.z": {U32, need{}},
	"%ntid.x": {U32, need{}}, "%ntid.y": {U32, need{}}, "%ntid.z": {U32, need{}},
	"%ctaid.x": {U32, need{}}, "%ctaid.y": {U32, need{}}, "%ctaid.z": {U32, need{}},
	"%nctaid.x": {U32, need{}}, "%nctaid.y": {U32, need{}}, "%nctaid.z": {U32, need{}},
	"%envreg1": {U32, need{}}, "%envreg2": {U32, need{}}, // of 32, which the driver fills as it likes: see simt
	"%laneid": {U32, need{}}, "%warpid": {U32, need{}}, "%nwarpid": {U32, need{}},
	"%smid": {U32, need{}}, "%nsmid": {U32, need{}}, "%gridid": {U64, need{}},
	"%lanemask_eq": {U32, need{}}, "%lanemask_le": {U32, need{}}, "%lanemask_lt": {U32, need{}},
	"%lanemask_ge": {U32, need{}}, "%lanemask_gt": {U32, need{}},
	"%clock": {U32, need{}}, "%clock_hi": {U32, need{version: Version{5, 0}}}, "%clock64": {U64, need{}},
	"%globaltimer": {U64, need{}}, "%globaltimer_lo": {U32, need{}}, "%globaltimer_hi": {U32, need{}},
	"%total_smem_size": {U32, need{}}, "%dynamic_smem_size": {U32, need{}},
	"%reserved_smem_offset_begin": {U32, reserved}, "%reserved_smem_offset_end": {U32, reserved},
	"%reserved_smem_offset_cap": {U32, reserved}, "%reserved_smem_offset_0": {U32, reserved},
	"%reserved_smem_offset_1": {U32, reserved},
	"%clusterid.x":            {U32, sm90}, "%clusterid.y": {U32, sm90}, "%clusterid.z": {U32, sm90},
	"%nclusterid.x": {U32, sm90}, "%nclusterid.y": {U32, sm90}, "%nclusterid.z": {U32, sm90},
	"%cluster_ctaid.x": {U32, sm90}, "%cluster_ctaid.y": {U32, sm90}, "%cluster_ctaid.z": {U32, sm90},
	"%cluster_nctaid.x": {U32, sm90}, "%cluster_nctaid.y": {U32, sm90}, "%cluster_nctaid.z": {U32, sm90},
	"%cluster_ctarank": {U32, sm90}, "%cluster_nctarank": {U32, sm90}, "%is_explicit_cluster": {Pred, sm90},
}

var (
	sm90     = need{version: Version{7, 8}, sm: 90}
	reserved = need{version: Version{7, 6}, sm: 80}
)

type special struct {
	typ  Type
	need need
}
