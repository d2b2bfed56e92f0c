package synth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// controlTokens returns the id of every control token: the fixed ones follow the text
// tokens, and the two that the config names lie where it says.
func controlTokens(s Shape) (map[string]int, error) {
	m := s.Config.LanguageModel
	ids := map[string]int{
		"<|audio_end|>":  m.AudioEndID,
		"<|vision_pad|>": m.AudioCFGID, // the published model's filler
	}
	taken := map[int]bool{m.AudioEndID: true, m.AudioCFGID: true}
	next := s.textVocab
	for _, name := range []string{
		"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|caption_start|>", "<|caption_end|>",
		"<|lyrics_start|>", "<|lyrics_end|>", "<|audio_start|>",
	} {
		for taken[next] {
			next++
		}
		ids[name], taken[next] = next, true
	}
	for name, id := range ids {
		if id >= m.AudioCodeOffset && id < m.AudioCodeOffset+m.AudioCodebookSize || id >= m.VocabSize {
			return nil, fmt.Errorf("shape %s leaves no id for %s: %d", s.Name, name, id)
		}
	}
	return ids, nil
}

// splitPattern is Qwen2's: contractions, words, single digits, punctuation, spaces.
const splitPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// tokenizerFiles returns tokenizer.json and tokenizer_config.json of a byte-level BPE
// without merges: every byte of a text is a token of its own. Control tokens stand in
// the vocabulary too, because that is how readers keep their ids where ids are left
// free between them.
func tokenizerFiles(s Shape) (tokenizer, config any, err error) {
	ids, err := controlTokens(s)
	if err != nil {
		return nil, nil, err
	}
	vocab := map[string]int{}
	for b := range 256 {
		vocab[string(byteLevelRune(byte(b)))] = b
	}
	type addedToken struct {
		ID         int    `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	}
	var added []addedToken
	var names []string
	byID := func(a, b string) int { return cmp.Compare(ids[a], ids[b]) }
	for _, name := range slices.SortedFunc(maps.Keys(ids), byID) {
		vocab[name] = ids[name]
		added = append(added, addedToken{ID: ids[name], Content: name, Special: true})
		names = append(names, name)
	}
	type object = map[string]any
	byteLevel := func(useRegex bool) object {
		return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": useRegex}
	}
	tokenizer = object{
		"version":      "1.0",
		"truncation":   nil,
		"padding":      nil,
		"added_tokens": added,
		"normalizer":   object{"type": "NFC"},
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{
			{"type": "Split", "pattern": object{"Regex": splitPattern}, "behavior": "Isolated", "invert": false},
			byteLevel(false),
		}},
		"post_processor": nil,
		"decoder":        byteLevel(true),
		"model": object{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
			"vocab": vocab, "merges": []string{},
		},
	}
	config = object{
		"tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": false, "bos_token": nil,
		"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": nil, "errors": "replace",
		"clean_up_tokenization_spaces": false, "model_max_length": 131072,
		"additional_special_tokens": names,
	}
	return tokenizer, config, nil
}

// byteLevelRune is the printable character that stands for a byte in byte-level BPE:
// printable Latin-1 for itself, the rest from U+0100 on (GPT-2's table).
func byteLevelRune(b byte) rune {
	printable := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }
	if printable(int(b)) {
		return rune(b)
	}
	shifted := rune(0x100)
	for earlier := range int(b) {
		if !printable(earlier) {
			shifted++
		}
	}
	return shifted
}
