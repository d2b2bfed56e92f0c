// Package tokenizer turns text into the token ids of the language model: the
// byte-level byte-pair encoding that a checkpoint's tokenizer.json describes in
// the format of the Hugging Face library "tokenizers", as the Qwen2 and Qwen3
// models use it.
//
// Text is composed (NFC), cut into pieces by the Qwen2 pattern and each piece is
// merged from its bytes upwards by the ranked merges of the file. The ids equal
// those of the Rust library; a single different id is another song.
//
// A checkpoint also defines added tokens such as <|im_start|> that control the
// model. [Tokenizer.Encode] never yields one of them, whatever the text says, so
// it is safe for text that a stranger wrote. A template asks for its control
// tokens by name with [Tokenizer.SpecialID].
package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Tokenizer encodes text. It does not change after Parse and may be used by
// several goroutines at once.
type Tokenizer struct {
	bytes  [256]int32     // id of each byte's symbol
	ranks  map[pair]int32 // rank of a merge, by the two ids that it joins
	joined []int32        // id that a merge yields, by rank
	maxID  int32

	added        map[string]int32 // ids of the added tokens, by content
	addedFirst   [256]bool        // bytes that start an added token
	addedLengths []int            // their lengths in bytes, longest first, each once
}

// pair is two neighbouring tokens.
type pair struct{ left, right int32 }

// Encode returns the ids of text as plain text: a literal "<|im_start|>" is
// encoded like any other characters and never becomes a control token. Invalid
// UTF-8 is read as U+FFFD.
//
// The time is O(n log n) in the length of the text, whatever it holds.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.appendText(make([]int32, 0, len(text)/3+4), text)
}

// EncodeWithSpecials is Encode, except that the content of an added token
// becomes that token wherever it stands, the leftmost and longest first. This is
// what the reference does with the whole prompt, and how a prompt is compared
// with it; use it only on trusted text. The options single_word, lstrip and
// rstrip of an added token are not applied; the checkpoints of this family set
// none of them.
func (t *Tokenizer) EncodeWithSpecials(text string) []int32 {
	ids := make([]int32, 0, len(text)/3+4)
	for text != "" {
		at, content := t.nextSpecial(text)
		ids = t.appendText(ids, text[:at])
		if content == "" {
			break
		}
		ids = append(ids, t.added[content])
		text = text[at+len(content):]
	}
	return ids
}

// SpecialID returns the id of the added token with the given content, such as
// "<|im_start|>".
func (t *Tokenizer) SpecialID(content string) (id int32, ok bool) {
	id, ok = t.added[content]
	return id, ok
}

// FindSpecials returns the added tokens whose content stands in text, each once,
// in the order of their first appearance. These are what EncodeWithSpecials
// would turn into control tokens and Encode does not.
func (t *Tokenizer) FindSpecials(text string) []string {
	var found []string
	seen := map[string]bool{}
	for text != "" {
		at, content := t.nextSpecial(text)
		if content == "" {
			break
		}
		if !seen[content] {
			seen[content] = true
			found = append(found, content)
		}
		text = text[at+len(content):]
	}
	return found
}

// MaxID returns the largest id that the tokenizer can yield. The language
// model's embedding needs more rows than that.
func (t *Tokenizer) MaxID() int32 { return t.maxID }

// nextSpecial finds the first added token in text, the longest where several
// start at one place. Without one it returns len(text) and "".
func (t *Tokenizer) nextSpecial(text string) (at int, content string) {
	for at := 0; at < len(text); at++ {
		if !t.addedFirst[text[at]] {
			continue
		}
		rest := text[at:]
		for _, n := range t.addedLengths {
			if n > len(rest) {
				continue
			}
			if _, ok := t.added[rest[:n]]; ok {
				return at, rest[:n]
			}
		}
	}
	return len(text), ""
}

// appendText appends the ids of plain text.
func (t *Tokenizer) appendText(ids []int32, text string) []int32 {
	if text == "" {
		return ids
	}
	text = nfc(strings.ToValidUTF8(text, string(utf8.RuneError)))
	m := merger{t: t}
	for text != "" {
		n := pieceLen(text)
		ids = m.append(ids, text[:n])
		text = text[n:]
	}
	return ids
}
