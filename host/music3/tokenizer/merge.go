package tokenizer

import "math"

// noMerge is the rank of two neighbours that do not merge.
const noMerge = math.MaxUint32

// merger applies the merges to one piece after another. It holds buffers that
// are reused from piece to piece.
type merger struct {
	t       *Tokenizer
	symbols []symbol
	queue   []uint64 // min-heap of rank<<32 | index of the left symbol
}

// symbol is a token of the piece while it is being merged. The symbols of a
// piece are a doubly linked list in the slice merger.symbols; the right one of
// two merged symbols leaves the list.
type symbol struct {
	prev, next int32 // indices, -1 at the ends
	id         int32
	rank       uint32 // of merging this symbol with the next one
}

// append appends the tokens of one piece to ids. As long as neighbours merge,
// the pair of lowest rank does, the leftmost first among equals.
func (m *merger) append(ids []int32, piece string) []int32 {
	m.symbols = m.symbols[:0]
	m.queue = m.queue[:0]
	for i := range len(piece) {
		m.symbols = append(m.symbols, symbol{int32(i - 1), int32(i + 1), m.t.bytes[piece[i]], noMerge})
	}
	m.symbols[len(piece)-1].next = -1
	for i := range m.symbols {
		m.rankAt(int32(i))
	}
	for len(m.queue) > 0 {
		top := m.pop()
		rank, at := uint32(top>>32), int32(uint32(top))
		left := &m.symbols[at]
		if left.rank != rank {
			continue // a merge beside it changed this pair meanwhile
		}
		right := &m.symbols[left.next]
		left.id = m.t.joined[rank]
		left.next = right.next
		right.rank = noMerge
		if left.next >= 0 {
			m.symbols[left.next].prev = at
		}
		m.rankAt(at)
		if left.prev >= 0 {
			m.rankAt(left.prev)
		}
	}
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		ids = append(ids, m.symbols[i].id)
	}
	return ids
}

// rankAt looks up the pair that starts at a symbol and queues it if it merges.
func (m *merger) rankAt(at int32) {
	s := &m.symbols[at]
	s.rank = noMerge
	if s.next < 0 {
		return
	}
	rank, ok := m.t.ranks[pair{s.id, m.symbols[s.next].id}]
	if !ok {
		return
	}
	s.rank = uint32(rank)
	m.push(uint64(rank)<<32 | uint64(at))
}

// push and pop are those of a binary heap. (container/heap would box every
// element.)
func (m *merger) push(x uint64) {
	q := append(m.queue, x)
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if q[up] <= q[i] {
			break
		}
		q[up], q[i] = q[i], q[up]
		i = up
	}
	m.queue = q
}

func (m *merger) pop() uint64 {
	q := m.queue
	top := q[0]
	q[0] = q[len(q)-1]
	q = q[:len(q)-1]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q[child] < q[least] {
				least = child
			}
		}
		if least == i {
			break
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
	m.queue = q
	return top
}
