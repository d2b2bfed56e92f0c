package mp3

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

//go:embed lame/lame.wasm
var lameModule []byte

// mostMemory bounds the memory of one encoder, in pages of 64 KiB. LAME takes 9.
const mostMemory = 64

// program is LAME, compiled for this machine.
type program struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// compiled compiles LAME when the first encoder is made, which takes about 0.1 s.
var compiled = sync.OnceValues(func() (program, error) {
	ctx := context.Background()
	p := program{runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(mostMemory))}
	var err error
	p.code, err = p.runtime.CompileModule(ctx, lameModule)
	return p, err
})

// lame is one encoder, with a memory of its own. It must be closed. Its methods are
// those of LAME's lame.h; the first error of the WebAssembly machine is kept in err.
type lame struct {
	module api.Module
	handle uint64
	err    error

	left, right uint64 // addresses of blockSize float32 each
	output      uint64 // address of outputSize bytes
	scratch     []byte
}

const (
	blockSize = 1152
	// outputSize is the worst case that lame.h names for a block, and enough for the
	// end of a stream and for its tag.
	outputSize = blockSize*5/4 + 7200
)

// Constants of lame.h.
const vbrMTRH = 4 // variable bit rate, the newer of two methods

// newLAME prepares an encoder. With tag, the stream begins with a frame that holds the
// place of the tag.
func newLAME(sampleRate, channels int, tag bool) (*lame, error) {
	p, err := compiled()
	if err != nil {
		return nil, fmt.Errorf("mp3: compile LAME: %w", err)
	}
	// Without a name any number of instances can exist side by side.
	module, err := p.runtime.InstantiateModule(context.Background(), p.code,
		wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		return nil, fmt.Errorf("mp3: start LAME: %w", err)
	}
	l := &lame{module: module}
	l.left, l.right = l.call("malloc", 4*blockSize), l.call("malloc", 4*blockSize)
	l.output = l.call("malloc", outputSize)
	l.handle = l.call("lame_init")
	if l.err == nil && (l.left == 0 || l.right == 0 || l.output == 0 || l.handle == 0) {
		l.err = fmt.Errorf("mp3: LAME is out of memory")
	}
	l.set("lame_set_num_channels", uint64(channels))
	l.set("lame_set_in_samplerate", uint64(sampleRate))
	l.set("lame_set_out_samplerate", uint64(sampleRate))
	l.set("lame_set_VBR", vbrMTRH)
	l.set("lame_set_VBR_quality", api.EncodeF32(quality))
	write := uint64(0)
	if tag {
		write = 1
	}
	l.set("lame_set_bWriteVbrTag", write)
	l.set("lame_init_params")
	if l.err != nil {
		l.close()
		return nil, l.err
	}
	return l, nil
}

func (l *lame) close() { _ = l.module.Close(context.Background()) }

// call calls an exported function and returns its result.
func (l *lame) call(name string, arguments ...uint64) uint64 {
	if l.err != nil {
		return 0
	}
	results, err := l.module.ExportedFunction(name).Call(context.Background(), arguments...)
	if err != nil {
		l.err = fmt.Errorf("mp3: %s: %w", name, err)
		return 0
	}
	return results[0]
}

// set calls a function of the handle that returns a negative number when it fails.
func (l *lame) set(name string, arguments ...uint64) {
	if r := api.DecodeI32(l.call(name, append([]uint64{l.handle}, arguments...)...)); l.err == nil && r < 0 {
		l.err = fmt.Errorf("mp3: %s%v: LAME's error %d", name, arguments, r)
	}
}

// encode takes up to blockSize samples of each channel and appends the bytes of the
// frames that became complete.
func (l *lame) encode(dst []byte, channels [][]float32) ([]byte, error) {
	l.put(l.left, channels[0])
	l.put(l.right, channels[len(channels)-1])
	n := l.call("lame_encode_buffer_ieee_float", l.handle, l.left, l.right, uint64(len(channels[0])), l.output, outputSize)
	return l.appendOutput(dst, "lame_encode_buffer_ieee_float", n)
}

// flush ends the stream and appends its last frames.
func (l *lame) flush(dst []byte) ([]byte, error) {
	return l.appendOutput(dst, "lame_encode_flush", l.call("lame_encode_flush", l.handle, l.output, outputSize))
}

// tagFrame is the frame for the place held at the beginning of a stream that has ended.
func (l *lame) tagFrame() ([]byte, error) {
	return l.appendOutput(nil, "lame_get_lametag_frame", l.call("lame_get_lametag_frame", l.handle, l.output, outputSize))
}

func (l *lame) put(address uint64, x []float32) {
	l.scratch = l.scratch[:0]
	for _, v := range x {
		l.scratch = binary.LittleEndian.AppendUint32(l.scratch, math.Float32bits(min(max(v, -1), 1)))
	}
	if l.err == nil && !l.module.Memory().Write(uint32(address), l.scratch) {
		l.err = fmt.Errorf("mp3: LAME's memory ends before its buffer")
	}
}

// appendOutput appends the n bytes that the named function has put out; n is its
// result, negative if it failed.
func (l *lame) appendOutput(dst []byte, name string, n uint64) ([]byte, error) {
	size := api.DecodeI32(n)
	if l.err == nil && (size < 0 || size > outputSize) {
		l.err = fmt.Errorf("mp3: %s: LAME's error %d", name, size)
	}
	if l.err != nil {
		return dst, l.err
	}
	data, ok := l.module.Memory().Read(uint32(l.output), uint32(size))
	if !ok {
		l.err = fmt.Errorf("mp3: LAME's memory ends before its buffer")
	}
	return append(dst, data...), l.err
}
