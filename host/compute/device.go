package compute

// Tensor is a weight as it lies in a file or in memory: row-major, little-endian.
// Data is only read, may be a mapped file, may start at any byte, and must stay
// valid for as long as a Weight made from it.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
}

// Use says what a weight is for, so that a device can choose where and how to
// keep it.
type Use uint8

const (
	// UseLinear is a matrix [out, in] of Queue.Linear.
	UseLinear Use = iota + 1
	// UseTable is a table [rows, width] whose rows are gathered in the frame loop.
	UseTable
	// UseColdTable is a table of which few rows are read, and only in prefill;
	// a device with memory of its own may leave it in host memory.
	UseColdTable
	// UseVector is a bias, a norm's scale or any other small tensor.
	UseVector
	// UseConv is a convolution kernel [out, in, taps] of Queue.Conv1D.
	UseConv
	// UseConvTranspose is a kernel [in, out, taps] of Queue.ConvTranspose1D.
	UseConvTranspose
)

// Weight is a tensor that a device holds, packed as the device likes.
type Weight interface {
	// Shape is the shape of the tensor it was loaded from.
	Shape() []int
	// DType is the type its values are rounded to: F32 or BF16.
	DType() DType
	// PrivateBytes is the memory the device took for it beyond the mapping.
	PrivateBytes() int64
}

// Buffer is typed memory of a device. Its contents are undefined when new.
type Buffer interface {
	DType() DType
	// Len counts numbers, not bytes.
	Len() int
	// Slice returns numbers lo to hi of the same memory. It does not allocate in
	// a way that grows with use: keep slices that the frame loop needs.
	Slice(lo, hi int) Buffer
	// Free gives the memory back, once no queue uses it. Only for buffers that
	// NewBuffer returned; their slices end with them.
	Free()
}

// KVConfig is the shape of a KV cache: for every layer, Blocks blocks of BlockSize
// positions, each position with Heads keys and Heads values of HeadDim numbers.
type KVConfig struct {
	Layers, Heads, HeadDim int
	BlockSize, Blocks      int
	DType                  DType // F32 or BF16
}

// Bytes is the memory such a cache takes.
func (c KVConfig) Bytes() int64 {
	return 2 * int64(c.Layers) * int64(c.Heads) * int64(c.HeadDim) * int64(c.BlockSize) * int64(c.Blocks) * int64(c.DType.Size())
}

// KVCache is one pool of blocks. Which block belongs to which sequence is the
// caller's bookkeeping, handed over with Rows.
type KVCache interface {
	Config() KVConfig
	Close() error
}

// Rows places the rows of a ragged batch: row i is the token at position Pos[i] of
// sequence Seq[i], whose position p lies in block Blocks[Seq[i]*MaxBlocks +
// p/BlockSize] of the cache. All are I32 buffers; devices read them when the
// operation runs, so a recording sees new values.
type Rows struct {
	N         int    // rows
	Pos       Buffer // [N]
	Seq       Buffer // [N]
	Blocks    Buffer // [sequences, MaxBlocks]
	MaxBlocks int
}

// Info describes a device to people.
type Info struct {
	Kind    string // "cpu", "cuda"
	Name    string // the hardware's own name
	Detail  string // instruction set, driver, architecture
	Threads int    // workers, where that has a meaning
}

// MemoryInfo is a device's view of its memory in bytes; zero means unknown.
type MemoryInfo struct {
	Total, Free, Used int64
}

// Estimator is a Device that knows what things would take before it makes them.
type Estimator interface {
	// WeightBytes is what Load would take of a tensor, whose Data may be missing: the
	// bytes that stay in place and are read there, and those of the device's own.
	WeightBytes(t Tensor, use Use, as DType) (inPlace, private int64)
	// BufferBytes is what NewBuffer would take.
	BufferBytes(d DType, n int) int64
	// KVCacheBytes is what NewKVCache would take.
	KVCacheBytes(c KVConfig) int64
}

// Device owns memory and makes queues. Its methods are safe for concurrent use.
type Device interface {
	Info() Info
	Memory() MemoryInfo

	// Load takes a tensor of any stored type. Its values are rounded to as (F32 or
	// BF16; a BF16 or F16 tensor is never rounded further by F32). A device that can
	// compute from the mapping does so and takes no private memory.
	Load(t Tensor, use Use, as DType) (Weight, error)

	// NewBuffer returns n numbers of type d (F32, BF16 or I32).
	NewBuffer(d DType, n int) (Buffer, error)

	// NewKVCache returns a cache whose blocks are undefined until written.
	NewKVCache(c KVConfig) (KVCache, error)

	// NewQueue returns a new queue. Queues of one device run side by side.
	NewQueue() (Queue, error)

	// Close frees everything the device handed out.
	Close() error
}
