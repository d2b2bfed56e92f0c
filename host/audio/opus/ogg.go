package opus

import (
	"encoding/binary"
	"io"
)

// Flags of a page's header (RFC 3533, section 6).
const (
	continued = 1 << iota // the page begins inside a packet
	begin                 // of the stream
	end                   // of the stream
)

// mostSegments is the largest number of segments of up to 255 bytes in a page.
const mostSegments = 255

// pages writes the pages of a logical Ogg stream.
type pages struct {
	out      io.Writer
	serial   uint32
	sequence uint32
	buffer   []byte
}

// write puts packets on a page, or more where they do not fit one. The granule position
// is that at the end of the last packet.
func (p *pages) write(packets [][]byte, granule int64, flags byte) error {
	var lacing []byte // lengths of segments; below 255 a packet ends
	var data []byte
	for _, packet := range packets {
		for range len(packet) / 255 {
			lacing = append(lacing, 255)
		}
		lacing = append(lacing, byte(len(packet)%255))
		data = append(data, packet...)
	}
	for inside := false; len(lacing) > 0; {
		n := min(len(lacing), mostSegments)
		size, ended := 0, false
		for _, length := range lacing[:n] {
			size += int(length)
			ended = ended || length < 255
		}
		header := flags &^ end
		if inside {
			header = header&^begin | continued
		}
		if n == len(lacing) {
			header |= flags & end
		}
		position := granule
		if !ended {
			position = -1 // stands for: no packet ends here
		}
		if err := p.page(lacing[:n], data[:size], position, header); err != nil {
			return err
		}
		inside = lacing[n-1] == 255
		lacing, data = lacing[n:], data[size:]
	}
	return nil
}

// page writes one page.
func (p *pages) page(lacing, data []byte, granule int64, flags byte) error {
	const checksumAt = 22
	le := binary.LittleEndian
	b := append(p.buffer[:0], "OggS\x00"...)
	b = append(b, flags)
	b = le.AppendUint64(b, uint64(granule))
	b = le.AppendUint32(b, p.serial)
	b = le.AppendUint32(b, p.sequence)
	b = append(b, 0, 0, 0, 0)
	b = append(b, byte(len(lacing)))
	b = append(b, lacing...)
	b = append(b, data...)
	le.PutUint32(b[checksumAt:], checksum(b))
	p.buffer = b
	p.sequence++
	_, err := p.out.Write(b)
	return err
}

// checksum is Ogg's CRC: of the polynomial 0x04c11db7, highest bit first, from zero.
func checksum(data []byte) uint32 {
	var c uint32
	for _, b := range data {
		c = c<<8 ^ checksums[byte(c>>24)^b]
	}
	return c
}

// checksums are those of single bytes.
var checksums = func() (table [256]uint32) {
	for i := range table {
		c := uint32(i) << 24
		for range 8 {
			c = c<<1 ^ (c>>31)*0x04c11db7
		}
		table[i] = c
	}
	return table
}()
