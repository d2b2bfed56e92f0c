package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxFile bounds a tokenizer.json. The published one has 11 MB.
const maxFile = 128 << 20

// file is the part of a tokenizer.json that decides over ids.
type file struct {
	AddedTokens []struct {
		ID      int64  `json:"id"`
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer    component `json:"normalizer"`
	PreTokenizer  component `json:"pre_tokenizer"`
	PostProcessor component `json:"post_processor"`
	Model         struct {
		Type                    string           `json:"type"`
		Dropout                 float64          `json:"dropout"`
		ContinuingSubwordPrefix string           `json:"continuing_subword_prefix"`
		EndOfWordSuffix         string           `json:"end_of_word_suffix"`
		IgnoreMerges            bool             `json:"ignore_merges"`
		Vocab                   map[string]int64 `json:"vocab"`
		Merges                  []merge          `json:"merges"`
	} `json:"model"`
}

// component is a normalizer, a pre-tokenizer or a post-processor.
type component struct {
	Type          string      `json:"type"`
	PreTokenizers []component `json:"pretokenizers"`
	Pattern       struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	Behavior       string `json:"behavior"`
	Invert         bool   `json:"invert"`
	AddPrefixSpace bool   `json:"add_prefix_space"`
	UseRegex       *bool  `json:"use_regex"`
}

// Parse reads a tokenizer.json. It refuses a file that asks for anything other
// than what this package does (byte-level BPE, NFC, the Qwen2 pattern), and says
// which member is at fault. The data is not kept.
func Parse(data []byte) (*Tokenizer, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("tokenizer.json: %d bytes, at most %d are supported", len(data), maxFile)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if err := f.checkKind(); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	t := &Tokenizer{}
	for _, step := range []func(*file) error{t.setVocab, t.setMerges, t.setAdded} {
		if err := step(&f); err != nil {
			return nil, fmt.Errorf("tokenizer.json: %w", err)
		}
	}
	return t, nil
}

// checkKind tells whether the file describes the kind of tokenizer that this
// package implements.
func (f *file) checkKind() error {
	m := &f.Model
	switch {
	case m.Type != "BPE":
		return fmt.Errorf("model type is %q, want \"BPE\"", m.Type)
	case m.Dropout != 0:
		return fmt.Errorf("model has dropout %v, want none", m.Dropout)
	case m.ContinuingSubwordPrefix != "" || m.EndOfWordSuffix != "":
		return fmt.Errorf("model has subword prefix %q and suffix %q, want none", m.ContinuingSubwordPrefix, m.EndOfWordSuffix)
	case m.IgnoreMerges:
		return errors.New("model has ignore_merges, which is not supported")
	case f.Normalizer.Type != "NFC":
		return fmt.Errorf("normalizer is %q, want \"NFC\"", f.Normalizer.Type)
	case f.PostProcessor.Type != "" && f.PostProcessor.Type != "ByteLevel":
		return fmt.Errorf("post_processor is %q, want none or \"ByteLevel\"", f.PostProcessor.Type)
	}
	parts := f.PreTokenizer.PreTokenizers
	if f.PreTokenizer.Type != "Sequence" || len(parts) != 2 || parts[0].Type != "Split" || parts[1].Type != "ByteLevel" {
		return errors.New("pre_tokenizer is not the sequence of Split and ByteLevel that Qwen2 has")
	}
	split, bytes := parts[0], parts[1]
	switch {
	case split.Pattern.Regex != splitPattern:
		return fmt.Errorf("pre_tokenizer splits by %q, but only %q is supported", split.Pattern.Regex, splitPattern)
	case split.Behavior != "Isolated" || split.Invert:
		return fmt.Errorf("pre_tokenizer split has behavior %q, invert %t, want \"Isolated\", false", split.Behavior, split.Invert)
	case bytes.AddPrefixSpace:
		return errors.New("pre_tokenizer ByteLevel has add_prefix_space, which is not supported")
	case bytes.UseRegex == nil || *bytes.UseRegex:
		return errors.New("pre_tokenizer ByteLevel has use_regex, which is not supported")
	}
	return nil
}

// setVocab checks the vocabulary's ids and finds the symbols of the 256 bytes.
func (t *Tokenizer) setVocab(f *file) error {
	ids := make(map[int64]string, len(f.Model.Vocab))
	for token, id := range f.Model.Vocab {
		if err := t.checkID(token, id); err != nil {
			return err
		}
		if twin, ok := ids[id]; ok {
			return fmt.Errorf("vocab gives id %d to both %q and %q", id, min(token, twin), max(token, twin))
		}
		ids[id] = token
	}
	for b := range t.bytes {
		id, ok := f.Model.Vocab[string(byteSymbol(byte(b)))]
		if !ok {
			return fmt.Errorf("vocab lacks %q, the symbol of byte 0x%02x", byteSymbol(byte(b)), b)
		}
		t.bytes[b] = int32(id)
	}
	return nil
}

func (t *Tokenizer) checkID(token string, id int64) error {
	if id < 0 || id > math.MaxInt32 {
		return fmt.Errorf("token %q has id %d, want 0 to %d", token, id, math.MaxInt32)
	}
	t.maxID = max(t.maxID, int32(id))
	return nil
}

func (t *Tokenizer) setMerges(f *file) error {
	t.ranks = make(map[pair]int32, len(f.Model.Merges))
	t.joined = make([]int32, len(f.Model.Merges))
	for rank, m := range f.Model.Merges {
		var ids [3]int32
		for i, token := range []string{m.left, m.right, m.left + m.right} {
			id, ok := f.Model.Vocab[token]
			if !ok {
				return fmt.Errorf("merge %d of %q and %q: the vocab lacks %q", rank, m.left, m.right, token)
			}
			ids[i] = int32(id)
		}
		t.ranks[pair{ids[0], ids[1]}] = int32(rank) // the last one counts, as in the reference
		t.joined[rank] = ids[2]
	}
	return nil
}

func (t *Tokenizer) setAdded(f *file) error {
	t.added = make(map[string]int32, len(f.AddedTokens))
	owner := make(map[int64]string, len(f.AddedTokens))
	for i, a := range f.AddedTokens {
		if a.Content == "" {
			return fmt.Errorf("added_tokens[%d] is empty", i)
		}
		if err := t.checkID(a.Content, a.ID); err != nil {
			return err
		}
		if id, ok := f.Model.Vocab[a.Content]; ok && id != a.ID {
			return fmt.Errorf("added token %q has id %d, but id %d in the vocab", a.Content, a.ID, id)
		}
		if id, ok := t.added[a.Content]; ok && int64(id) != a.ID {
			return fmt.Errorf("added token %q has both id %d and id %d", a.Content, id, a.ID)
		}
		if twin, ok := owner[a.ID]; ok && twin != a.Content {
			return fmt.Errorf("added tokens %q and %q have the same id %d", twin, a.Content, a.ID)
		}
		owner[a.ID] = a.Content
		t.added[a.Content] = int32(a.ID)
		t.addedFirst[a.Content[0]] = true
		if !slices.Contains(t.addedLengths, len(a.Content)) {
			t.addedLengths = append(t.addedLengths, len(a.Content))
		}
	}
	for token, id := range f.Model.Vocab {
		if content, ok := owner[id]; ok && content != token {
			return fmt.Errorf("added token %q and %q of the vocab have the same id %d", content, token, id)
		}
	}
	slices.Sort(t.addedLengths)
	slices.Reverse(t.addedLengths)
	return nil
}

// byteSymbol returns the character that stands for a byte in the vocabulary: the
// printable characters of Latin-1 for themselves, the others moved to U+0100 and
// up in their order.
func byteSymbol(b byte) rune {
	switch {
	case b <= ' ':
		return 0x100 + rune(b)
	case b <= '~':
		return rune(b)
	case b <= 0xA0:
		return 0x121 + rune(b) - 0x7F
	case b == 0xAD:
		return 0x143
	}
	return rune(b)
}

// merge is the two tokens that a merge joins. The file writes them as ["a", "b"]
// or, in older files, as "a b".
type merge struct{ left, right string }

// UnmarshalJSONFrom reads either form.
func (m *merge) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		both := token.String()
		left, right, ok := strings.Cut(both, " ")
		if !ok || strings.Contains(right, " ") {
			return fmt.Errorf("merge %q is not two tokens with one space between them", both)
		}
		m.left, m.right = left, right
		return nil
	}
	var both []string
	if err := json.UnmarshalDecode(dec, &both); err != nil {
		return err
	}
	if len(both) != 2 {
		return fmt.Errorf("merge of %d tokens, want 2", len(both))
	}
	m.left, m.right = both[0], both[1]
	return nil
}
