package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ringo-go/ringo"
)

// A dataset is labelled pictures, of one byte for each pixel.
type dataset struct {
	pixels int    // of one picture
	images []byte // [n·pixels]
	labels []byte // [n]
}

func newDataset(n, pixels int) dataset {
	return dataset{pixels: pixels, images: make([]byte, n*pixels), labels: make([]byte, n)}
}

func (d dataset) len() int           { return len(d.labels) }
func (d dataset) image(i int) []byte { return d.images[i*d.pixels : (i+1)*d.pixels] }

// A corpus is the data that a classifier learns from, and the data that test it.
type corpus struct{ train, test dataset }

// classes is one more than the largest label.
func (c corpus) classes() int {
	return 1 + int(max(slices.Max(c.train.labels), slices.Max(c.test.labels)))
}

// Numbers of pictures of the made-up corpus.
const glyphTrain, glyphTest = 12000, 2000

// load reads the files of -images and -labels, or makes up data. Without files for
// the test it takes the last seventh of the pictures for that, the share that MNIST has.
func load(o options) (c corpus, err error) {
	if o.images == "" {
		return corpus{makeGlyphs(o.seed, 1, glyphTrain), makeGlyphs(o.seed, 2, glyphTest)}, nil
	}
	if c.train, err = openDataset(o.images, o.labels); err != nil {
		return c, err
	}
	if o.testImages == "" {
		n := c.train.len()
		if n < 2 {
			return c, fmt.Errorf("%s: %d picture, want at least one to train and one to test; or give -test-images and "+
				"-test-labels", o.images, n)
		}
		c.train, c.test = c.train.cut(n - (n+6)/7)
		return c, nil
	}
	if c.test, err = openDataset(o.testImages, o.testLabels); err != nil {
		return c, err
	}
	if c.test.pixels != c.train.pixels {
		return c, fmt.Errorf("%s has pictures of %d pixels, %s of %d; give files of one kind", o.images, c.train.pixels,
			o.testImages, c.test.pixels)
	}
	return c, nil
}

// cut divides a dataset into the pictures before the i-th, and those from it on.
func (d dataset) cut(i int) (before, from dataset) {
	return dataset{d.pixels, d.images[:i*d.pixels], d.labels[:i]}, dataset{d.pixels, d.images[i*d.pixels:], d.labels[i:]}
}

// openDataset reads pictures [n, rows, columns] and labels [n].
func openDataset(images, labels string) (dataset, error) {
	x, err := openIDX(images)
	if err != nil {
		return dataset{}, err
	}
	y, err := openIDX(labels)
	if err != nil {
		return dataset{}, err
	}
	switch {
	case len(x.shape) < 2:
		return dataset{}, fmt.Errorf("%s: shape %v, want pictures [n, rows, columns]; are -images and -labels swapped?",
			images, x.shape)
	case len(y.shape) != 1:
		return dataset{}, fmt.Errorf("%s: shape %v, want labels [n]; are -images and -labels swapped?", labels, y.shape)
	case x.shape[0] != y.shape[0]:
		return dataset{}, fmt.Errorf("%d pictures in %s, %d labels in %s; give files that belong together", x.shape[0],
			images, y.shape[0], labels)
	}
	return dataset{pixels: len(x.data) / x.shape[0], images: x.data, labels: y.data}, nil
}

// share gives all ranks the data that rank 0 has loaded, so that only its host needs
// the files and all ranks learn from the same data.
func share(c *ringo.Comm, mine corpus) (corpus, error) {
	dims := []int64{int64(mine.train.pixels), int64(mine.train.len()), int64(mine.test.len())}
	if err := ringo.Broadcast(c, dims, 0); err != nil {
		return corpus{}, err
	}
	if c.Rank() != 0 {
		mine = corpus{newDataset(int(dims[1]), int(dims[0])), newDataset(int(dims[2]), int(dims[0]))}
	}
	for _, b := range [][]byte{mine.train.images, mine.train.labels, mine.test.images, mine.test.labels} {
		if err := ringo.Broadcast(c, b, 0); err != nil {
			return corpus{}, err
		}
	}
	return mine, nil
}

// An order is the endless sequence in which samples are used: each epoch is a
// permutation of all samples. It depends only on the seed and n, so ranks need not
// communicate, and the number of ranks changes nothing.
type order struct {
	n           int
	seed, epoch uint64
	left        []int // of this epoch
}

// next fills batch with the samples that come next.
func (o *order) next(batch []int) {
	for i := range batch {
		if len(o.left) == 0 {
			o.epoch++
			o.left = rand.New(rand.NewPCG(o.seed, o.epoch)).Perm(o.n)
		}
		batch[i], o.left = o.left[0], o.left[1:]
	}
}

// part is the share [low, high) of a rank in n items.
func part(n, rank, ranks int) (low, high int) { return rank * n / ranks, (rank + 1) * n / ranks }
