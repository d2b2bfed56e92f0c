package rng

// The constants of MT19937 (Matsumoto and Nishimura, 1998).
const (
	mtSize  = 624
	mtShift = 397
	mtUpper = 1 << 31
	mtTwist = 0x9908b0df
)

// mt19937 is the Mersenne Twister. Its outputs are made in blocks of mtSize, and
// tempered only when read, so that skipping costs little.
type mt19937 struct {
	state [mtSize]uint32
	at    int // words of state already used
}

func (m *mt19937) seed(seed uint32) {
	m.state[0] = seed
	for i := 1; i < mtSize; i++ {
		prev := m.state[i-1]
		m.state[i] = 1812433253*(prev^prev>>30) + uint32(i)
	}
	m.at = mtSize
}

// refill replaces the state by the next one. Call it only when all words are used.
func (m *mt19937) refill() {
	s := &m.state
	for i := 0; i < mtSize-mtShift; i++ {
		s[i] = s[i+mtShift] ^ twist(s[i], s[i+1])
	}
	for i := mtSize - mtShift; i < mtSize-1; i++ {
		s[i] = s[i+mtShift-mtSize] ^ twist(s[i], s[i+1])
	}
	s[mtSize-1] = s[mtShift-1] ^ twist(s[mtSize-1], s[0])
	m.at = 0
}

func twist(u, v uint32) uint32 {
	return (u&mtUpper|v&^mtUpper)>>1 ^ -(v&1)&mtTwist
}

func temper(y uint32) uint32 {
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// next is one 32-bit output.
func (m *mt19937) next() uint32 {
	if m.at == mtSize {
		m.refill()
	}
	y := m.state[m.at]
	m.at++
	return temper(y)
}

// uniform24 is a float32 in [0, 1): the low 24 bits of one output.
func (m *mt19937) uniform24() float32 {
	return float32(m.next()&(1<<24-1)) * (1.0 / (1 << 24))
}

// bits53 is the numerator of a float64 in [0, 1) with denominator 2^53: the low 53
// bits of two outputs, of which the first is the upper half.
func (m *mt19937) bits53() uint64 {
	hi := m.next()
	return join53(hi, m.next())
}

func join53(hi, lo uint32) uint64 {
	return (uint64(hi)<<32 | uint64(lo)) & (1<<53 - 1)
}
