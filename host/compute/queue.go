package compute

// Queue runs operations in the order of the calls. It is used by one goroutine at
// a time. An operation may return before it ran; Sync waits. A call whose buffers
// are too short or of the wrong type is a bug of the caller and panics. A failure of
// the device is kept, later operations do nothing, and Sync returns it.
//
// r(x) means: rounded to the type of the destination. R, N, K, ... are sizes.
type Queue interface {
	// Sync waits for everything queued and returns, then forgets, the first failure.
	Sync() error
	Close() error

	// Record returns a recording of the operations that f queues. f may be called
	// any number of times and must queue the same operations with the same buffers
	// each time; what changes between runs is read from buffers. Upload, Download
	// and Sync are not allowed in f.
	Record(f func(Queue)) (Recording, error)

	// Upload writes src to dst[:len(src)], rounding. dst is F32 or BF16.
	Upload(dst Buffer, src []float32)
	// UploadInts writes src to the I32 buffer dst.
	UploadInts(dst Buffer, src []int32)
	// Download waits for the queue and reads src[:len(dst)].
	Download(dst []float32, src Buffer) error
	// DownloadInts is Download for an I32 buffer.
	DownloadInts(dst []int32, src Buffer) error
	// Copy copies len(src) numbers, converting (rounding) between F32 and BF16.
	Copy(dst, src Buffer)
	// Zero sets every number of dst to 0.
	Zero(dst Buffer)

	MatrixOps
	AttentionOps
	ElementOps
	ConvolutionOps
	SamplingOps
	FlowOps
}

// Recording is a fixed sequence of operations that can be queued again cheaply.
type Recording interface {
	// Run queues the sequence on the queue that recorded it.
	Run()
	Close() error
}

// Linear is one product of a group that shares its input: see MatrixOps.Linear.
type Linear struct {
	Y        Buffer // [R, N]
	Stride   int    // numbers from one row of Y to the next; 0 means N
	W        Weight // [N, K]
	Bias     Weight // [N] or nil
	Residual Buffer // laid out like Y, or nil; may be Y itself
}

// MatrixOps are products and gathers.
type MatrixOps interface {
	// Linear computes, for every product of the group and each of the rows of x
	// [rows, K]: y = r(sum_k x_k w_nk + bias_n), and with a residual
	// y = r(residual + r(sum_k x_k w_nk + bias_n)). Y must not overlap x.
	Linear(x Buffer, rows int, group ...Linear)

	// EmbedSum gathers and adds table rows. Row i's ids stand at ids[i*stride] and
	// the numbers after it, one for each part (I32); with part j's row
	// t_j = table_j[base_j + id_j]:
	//   one part:      y_i = r(t_0)
	//   several parts: y_i = r(r(t_0 + r(t_1 + t_2 + ...)) * scale)
	// where the inner sum adds in order, in float32, and is rounded once. A row
	// outside its table is a failure of the device.
	EmbedSum(y Buffer, rows int, ids Buffer, stride int, parts []TablePart, scale float32)
}

// TablePart is one column of EmbedSum: Base is added to each of its ids.
type TablePart struct {
	Table Weight // [rows, width]
	Base  int
}

// RopeTable holds rotary embeddings: the cosine and sine of position p and
// frequency i at [p, i], Dim/2 frequencies a position, in the type of the run.
type RopeTable struct {
	Cos, Sin Buffer // [positions, Dim/2], type of the activations
	Dim      int    // how many leading numbers of each head rotate
}

// AppendKV is the part of an attention layer between its projections and its
// scores: see AttentionOps.AppendKV.
type AppendKV struct {
	Cache        KVCache
	Layer        int
	Q            Buffer // [N, QHeads*HeadDim], normed and rotated in place
	K, V         Buffer // [N, Heads*HeadDim]; read only
	QHeads       int
	QNorm, KNorm Weight    // [HeadDim], RMS norm over each head; nil for none
	Eps          float32   // of the norms
	Rope         RopeTable // Dim 0 for none
}

// AttentionOps are the two forms of attention and what belongs to them.
type AttentionOps interface {
	// AppendKV norms (as RMSNorm, over each head), rotates and stores: for each row,
	// with its position p, q and k become rope(norm(.)), then k and v are written to
	// the cache at p. Rotation pairs number i with number i+Dim/2 (half-split):
	//   a' = r(r(a*cos) + r(-b*sin)),  b' = r(r(b*cos) + r(a*sin)).
	AppendKV(a AppendKV, at Rows)

	// CachedAttention is causal attention of each row over positions 0..p of its
	// sequence in the cache: o [N, qHeads*HeadDim] = r(softmax(q.k*scale) v). Query
	// head h reads key head h*Heads/qHeads.
	CachedAttention(o, q Buffer, cache KVCache, layer, qHeads int, scale float32, at Rows)

	// CopyBlock copies one block of every layer, keys and values.
	CopyBlock(cache KVCache, dst, src int)

	// Rope rotates, in place, the first table.Dim numbers of each head of x
	// [batch, length, heads*headDim]; the position is the index in the sequence.
	Rope(x Buffer, batch, length, heads, headDim int, table RopeTable)

	// FullAttention has no mask: o [batch, length, heads*headDim] =
	// r(softmax(q k^T * scale) v) within each batch entry and head.
	FullAttention(o, q, k, v Buffer, batch, length, heads, headDim int, scale float32)
}

// ElementOps are norms and element-wise functions.
type ElementOps interface {
	// RMSNorm: y [rows, n] = r(r(x / sqrt(mean(x^2) + eps)) * w). y may be x.
	RMSNorm(y, x Buffer, w Weight, rows int, eps float32)
	// LayerNorm: y [rows, n] = r((x-mean) / sqrt(var+eps) * w + b), biased variance.
	LayerNorm(y, x Buffer, w, b Weight, rows int, eps float32)
	// SwiGLU: y = r(r(silu(gate)) * up), element by element; y may be either input.
	SwiGLU(y, gate, up Buffer)
	// ValueSiLU splits each row of x [rows, 2n] in a value half and a gate half:
	// y [rows, n] = r(value * r(silu(gate))).
	ValueSiLU(y, x Buffer, rows int)
	// SiLU: y = r(x / (1 + exp(-x))).
	SiLU(y, x Buffer)
	// Tanh: y = r(tanh(x)).
	Tanh(y, x Buffer)
	// Add: y = r(a + b), where b [n] is repeated over the rows of a [rows, n].
	Add(y, a, b Buffer)
	// Snake, over x [rows, channels], alpha [channels]:
	//   y = r(x + r(r(1/r(alpha+1e-9)) * r(s*s))), s = r(sin(r(alpha*x))).
	// The sine is accurate to 1 ulp for every finite argument.
	Snake(y, x Buffer, alpha Weight, rows int)
	// Finite writes 0 to the I32 out[0] when every number of x is finite, else 1 plus
	// the index of the first that is not.
	Finite(out, x Buffer)
}

// Conv is one convolution over channels-last sequences.
type Conv struct {
	Batch, Length int    // of the input [Batch, Length, in]
	W             Weight // [out, in, taps], or [in, out, taps] when transposed
	Bias          Weight // [out] or nil
	Stride        int    // of a transposed convolution
	Dilation      int
	Pad           int
	Residual      Buffer // [Batch, Length', out] or nil; may be Y itself
}

// ConvolutionOps are the convolutions of the condition encoder and the vocoder.
type ConvolutionOps interface {
	// Conv1D: y[t, o] = r(bias_o + sum_{k,i} w[o, i, k] x[t + k*dilation - pad, i]),
	// with zeros outside, Length' = Length + 2*pad - dilation*(taps-1); with a
	// residual, y = r(residual + r(...)).
	Conv1D(y, x Buffer, c Conv)
	// ConvTranspose1D: y[t*stride + k - pad, o] += w[i, o, k] x[t, i] over all t, k, i,
	// plus bias, stored once; Length' = (Length-1)*stride - 2*pad + taps.
	ConvTranspose1D(y, x Buffer, c Conv)
}

// Sample is one guided draw per song: see SamplingOps.Sample.
type Sample struct {
	Logits   Buffer  // [2*songs, n], rows conditional, unconditional
	Songs    int     //
	N        int     // candidates
	Guidance float32 // guided = uncond + r32((cond - uncond) * guidance)
	TopK     int
	Restrict bool // keep only candidates among the TopK of the conditional row

	// Exponentials, when not nil, holds the variates q [songs, n] F32. Otherwise
	// they are Philox draws: rng.Exponential(seed, iteration, Draw, candidate).
	Exponentials Buffer
	Seeds        Buffer // I32 [songs, 2]: low and high word of the seed
	Iterations   Buffer // I32 [songs]
	Draw         int    // 0 for the semantic code, j for residual code j

	// Out is I32 [2*songs, OutStride]; the index drawn for song s is written to
	// column OutColumn of rows 2s and 2s+1, or -1 when a logit is not finite.
	Out                  Buffer
	OutStride, OutColumn int
}

// SamplingOps draw codes.
type SamplingOps interface {
	// Sample, in float32 whatever the type of the logits:
	//   guided_c = u_c + (l_c - u_c)*guidance
	//   with Restrict, only c with l_c >= the TopK-th largest l stay (ties stay);
	//   of those, only c with guided_c >= the TopK-th largest guided (ties stay);
	//   p = softmax(guided) over the kept; the draw is argmax p_c / q_c, the first
	//   of equals. TopK is capped at N.
	Sample(s Sample)
}

// FlowOps are the arithmetic of conditions, windows and Euler steps.
type FlowOps interface {
	// MixLayers: y [rows, n] = r(scale * r(sum_l w_l x[row, l*n:(l+1)*n])), with the
	// weights and the scale given as float32 values.
	MixLayers(y, x Buffer, rows, n int, weights []float32, scale float32)
	// NearestRows: y [outRows, n], y[t] = x[floor(float32(t) * (float32(rows) /
	// float32(outRows)))], each operation in float32, index capped at rows-1.
	NearestRows(y Buffer, outRows int, x Buffer, rows, n int)
	// SplitChannels: y [parts, rows, n/parts] from x [rows, n].
	SplitChannels(y, x Buffer, rows, n, parts int)
	// Blend: x = r(r(noiseWeight*noise) + r(t*carry)) over the length of carry.
	Blend(x, noise, carry Buffer, noiseWeight, t float32)
	// EulerStep: x = r(x + r(dt * v)), with v = r(vu + r(guidance * r(vc - vu))), or
	// v = vc when vu is nil. No fused multiply-add.
	EulerStep(x, vc, vu Buffer, guidance, dt float32)
}
