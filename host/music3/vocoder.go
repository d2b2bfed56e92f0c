package music3

import (
	"fmt"
	"math"

	"skald/host/checkpoint"
	"skald/host/compute"
)

// Vocoder turns latents [L, X] into stereo samples. Each channel is decoded by itself
// from half of the latent channels; both run as a batch of two.
type Vocoder struct {
	cfg   checkpoint.Vocoder
	dtype compute.DType

	inProj, inProjBias compute.Weight // [P, X/2], a 1x1 convolution
	convIn             conv           // P -> W channels
	blocks             []vocoderBlock
	snakeOut           compute.Weight // [channels]
	convOut            conv           // channels -> 1
}

// conv is a convolution with weight norm folded in.
type conv struct {
	w, bias  compute.Weight
	out      int // channels
	taps     int
	dilation int
	stride   int // of a transposed one
}

type vocoderBlock struct {
	snake compute.Weight
	up    conv // transposed
	units []residualUnit
}

type residualUnit struct {
	snake1, snake2 compute.Weight
	conv1          conv
	conv2, bias2   compute.Weight // [out, in], a 1x1 convolution
}

// vocoderDilations are those of a block's residual units, fixed by the reference.
var vocoderDilations = [...]int{1, 3, 9}

func loadVocoder(l *loader, cfg checkpoint.Vocoder, dtype compute.DType) *Vocoder {
	l.component = "vocoder"
	v := &Vocoder{cfg: cfg, dtype: dtype}
	snake := func(name string) compute.Weight { return l.weight(name+".alpha", compute.UseVector, dtype) }
	in := l.tensor("dec_in_proj.weight")
	v.inProj, v.inProjBias = l.put(withoutTaps(in), compute.UseLinear, dtype), l.weight("dec_in_proj.bias", compute.UseVector, dtype)
	v.convIn = loadConv(l, "conv_in", dtype, 1)
	for b, stride := range cfg.UpsamplingRatios {
		at := fmt.Sprintf("blocks.%d.", b)
		block := vocoderBlock{snake: snake(at + "snake1"), up: loadConvTranspose(l, at+"conv_t1", dtype, stride)}
		for u, dilation := range vocoderDilations {
			unit := fmt.Sprintf("%sres_unit%d.", at, u+1)
			block.units = append(block.units, residualUnit{
				snake1: snake(unit + "snake1"), snake2: snake(unit + "snake2"),
				conv1: loadConv(l, unit+"conv1", dtype, dilation),
				conv2: l.putMade(withoutTaps(l.folded(unit+"conv2", dtype)), compute.UseLinear, dtype),
				bias2: l.weight(unit+"conv2.bias", compute.UseVector, dtype),
			})
		}
		v.blocks = append(v.blocks, block)
	}
	v.snakeOut = snake("snake_out")
	v.convOut = loadConv(l, "conv_out", dtype, 1)
	return v
}

func loadConv(l *loader, name string, dtype compute.DType, dilation int) conv {
	t := l.folded(name, dtype)
	c := conv{dilation: dilation, w: l.putMade(t, compute.UseConv, dtype), bias: l.weight(name+".bias", compute.UseVector, dtype)}
	if l.err == nil {
		c.out, c.taps = t.Shape[0], t.Shape[2]
	}
	return c
}

func loadConvTranspose(l *loader, name string, dtype compute.DType, stride int) conv {
	t := l.folded(name, dtype)
	c := conv{stride: stride, w: l.putMade(t, compute.UseConvTranspose, dtype), bias: l.weight(name+".bias", compute.UseVector, dtype)}
	if l.err == nil {
		c.out, c.taps = t.Shape[1], t.Shape[2]
	}
	return c
}

// withoutTaps views a kernel [out, in, 1] as the matrix [out, in].
func withoutTaps(t compute.Tensor) compute.Tensor {
	if len(t.Shape) == 3 {
		t.Shape = t.Shape[:2]
	}
	return t
}

// folded returns g * v / ||v|| of a weight-normed convolution, the norm taken over all
// but dimension 0. The parts are rounded to dtype first and the result once more when
// it is loaded, as in the reference.
func (l *loader) folded(name string, dtype compute.DType) compute.Tensor {
	shape := l.tensor(name + ".weight_v").Shape
	v, g := l.floats(name+".weight_v", dtype), l.floats(name+".weight_g", dtype)
	if l.err != nil {
		return compute.Tensor{}
	}
	if l.counting != nil {
		return compute.Tensor{Name: name, DType: compute.F32, Shape: shape}
	}
	width := len(v) / len(g)
	for i := range g {
		row := v[i*width : (i+1)*width]
		sum := 0.0
		for _, x := range row {
			sum += float64(x) * float64(x)
		}
		scale := g[i] / float32(math.Sqrt(sum))
		for j := range row {
			row[j] *= scale
		}
	}
	return fromFloats("vocoder."+name+" (folded)", v, shape...)
}

// Samples is the number of samples per channel that a window's latents become.
func (v *Vocoder) Samples(latents int) int {
	n := latents
	for _, s := range v.cfg.UpsamplingRatios {
		n = n*s - s%2 // an odd stride pads one more than it needs
	}
	return n
}

// vocoderBuffers is the working memory of a window: three activations as large as the
// largest stage needs, and the result.
type vocoderBuffers struct {
	streams compute.Buffer // [2, L, X/2]
	x, y, z compute.Buffer
	wave    compute.Buffer // [2, samples]
	views   views

	products group
}

func (v *Vocoder) newBuffers(a *allocator, latents int) *vocoderBuffers {
	largest := latents * max(v.cfg.DecoderInputDim, v.cfg.DecoderHiddenDim)
	n, channels := latents, v.cfg.DecoderHiddenDim
	for _, s := range v.cfg.UpsamplingRatios {
		n, channels = n*s, channels/2
		largest = max(largest, n*channels)
	}
	get := func(n int) compute.Buffer { return a.buffer(v.dtype, n) }
	return &vocoderBuffers{
		streams: get(latents * v.cfg.LatentChannels),
		x:       get(2 * largest), y: get(2 * largest), z: get(2 * largest),
		wave:  get(2 * v.Samples(latents)),
		views: views{},
	}
}

func (b *vocoderBuffers) free() {
	for _, x := range []compute.Buffer{b.streams, b.x, b.y, b.z, b.wave} {
		if x != nil {
			x.Free()
		}
	}
}

// forward decodes latents [L, X] into b.wave [2, samples]: left, then right. between,
// which may stop the work with an error, is called before the first block and after
// every one.
func (v *Vocoder) forward(q compute.Queue, b *vocoderBuffers, latents compute.Buffer, length int, between func(done, blocks int) error) error {
	channels := v.cfg.LatentChannels
	steps := len(v.blocks) + 1
	q.SplitChannels(b.streams, latents, length, channels, 2)
	q.Linear(b.streams, 2*length, b.products.of(compute.Linear{Y: b.y, W: v.inProj, Bias: v.inProjBias})...)
	q.Conv1D(b.x, b.y, v.convIn.same(length))
	if err := between(0, steps); err != nil {
		return err
	}

	for i, block := range v.blocks {
		n := v.blockChannels(i)
		q.Snake(b.views.of(b.y, 0, 2*length*n), b.views.of(b.x, 0, 2*length*n), block.snake, 2*length)
		q.ConvTranspose1D(b.x, b.y, block.up.transposed(length))
		length = block.up.transposedLength(length)
		for _, u := range block.units {
			u.forward(q, b, length, block.up.out)
		}
		if err := between(i+1, steps); err != nil {
			return err
		}
	}

	n := 2 * length * v.blockChannels(len(v.blocks))
	q.Snake(b.views.of(b.y, 0, n), b.views.of(b.x, 0, n), v.snakeOut, 2*length)
	wave := b.views.of(b.wave, 0, 2*length)
	q.Conv1D(wave, b.y, v.convOut.same(length))
	q.Tanh(wave, wave)
	return between(steps, steps)
}

// blockChannels is the width of the signal that enters block i.
func (v *Vocoder) blockChannels(i int) int {
	if i == 0 {
		return v.convIn.out
	}
	return v.blocks[i-1].up.out
}

// forward adds the unit's branch to b.x [2, length, n].
func (u residualUnit) forward(q compute.Queue, b *vocoderBuffers, length, n int) {
	x, y, z := b.views.of(b.x, 0, 2*length*n), b.views.of(b.y, 0, 2*length*n), b.views.of(b.z, 0, 2*length*n)
	q.Snake(y, x, u.snake1, 2*length)
	q.Conv1D(z, y, u.conv1.same(length))
	q.Snake(z, z, u.snake2, 2*length)
	q.Linear(z, 2*length, b.products.of(compute.Linear{Y: x, W: u.conv2, Bias: u.bias2, Residual: x})...)
}

// same is the convolution of both streams that keeps their length.
func (c conv) same(length int) compute.Conv {
	return compute.Conv{
		Batch: 2, Length: length, W: c.w, Bias: c.bias, Stride: 1,
		Dilation: c.dilation, Pad: c.dilation * (c.taps - 1) / 2,
	}
}

func (c conv) transposed(length int) compute.Conv {
	return compute.Conv{Batch: 2, Length: length, W: c.w, Bias: c.bias, Stride: c.stride, Dilation: 1, Pad: (c.stride + 1) / 2}
}

func (c conv) transposedLength(length int) int {
	return (length-1)*c.stride - 2*((c.stride+1)/2) + c.taps
}
