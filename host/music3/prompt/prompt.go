// Package prompt turns a description of the music and its lyrics into the token
// ids that the language model of MiniMax-Music3 starts from.
//
// The text is part of what the model was trained on: white space too many in it
// is another song. [Clean] and [Normalise] therefore do exactly what the
// reference pipeline does, with Python's idea of white space, lines and lower
// case. [Build] puts them into the template
//
//	<|im_start|><|caption_start|> caption <|caption_end|><|lyrics_start|> lyrics <|lyrics_end|><|im_end|><|audio_start|>
//
// (without the spaces). It differs from the reference in one point: only the
// template's own control tokens become control tokens. The reference also turns
// a "<|im_end|>" that a caller wrote into one, and so lets lyrics end the prompt.
package prompt

import (
	"errors"
	"fmt"
	"strings"

	"skald/host/music3/tokenizer"
)

// Mode says what happens to text that stands behind a section tag on its line.
type Mode int

const (
	// Friendly moves such text to the next line, and reads CRLF as LF.
	Friendly Mode = iota
	// Reference drops such text and keeps CR, as the reference does.
	Reference
)

// Config is what the prompt needs to know of the checkpoint.
type Config struct {
	CFGID     int32 // fills the unconditional prompt
	MaxTokens int   // the reference accepts 5000
}

// The control tokens of the template, in its order.
const (
	imStart = iota
	captionStart
	captionEnd
	lyricsStart
	lyricsEnd
	imEnd
	audioStart
	controls
)

var controlText = [controls]string{
	"<|im_start|>", "<|caption_start|>", "<|caption_end|>",
	"<|lyrics_start|>", "<|lyrics_end|>", "<|im_end|>", "<|audio_start|>",
}

// CheckTokenizer reports the control tokens of the template that a tokenizer
// lacks. It lets a loader refuse such a checkpoint; Build does the same check.
func CheckTokenizer(tok *tokenizer.Tokenizer) error {
	_, err := controlIDs(tok)
	return err
}

func controlIDs(tok *tokenizer.Tokenizer) (ids [controls]int32, err error) {
	var missing []string
	for i, text := range controlText {
		id, ok := tok.SpecialID(text)
		if !ok {
			missing = append(missing, text)
		}
		ids[i] = id
	}
	if missing != nil {
		err = fmt.Errorf("the tokenizer has no added token %s, which the prompt needs; its tokenizer.json is not that of MiniMax-Music3", strings.Join(missing, ", "))
	}
	return ids, err
}

// Prompt is an assembled prompt.
type Prompt struct {
	// Text is the whole prompt as the reference assembles it.
	Text string
	// IDs is the conditional prompt.
	IDs []int32
	// Unconditional is as long as IDs; all but the first and the last two are the
	// filler.
	Unconditional []int32
	// Warnings tell the caller, in English, where the prompt may not be what was
	// meant. They may quote section tags, never other lyrics.
	Warnings []string
}

// FieldError says which of the two texts of a request is at fault.
type FieldError struct {
	Field   string // "instructions" or "lyrics"
	Message string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Build assembles the prompt of one song. A text that is blank or too long is a
// *FieldError; two faults are joined by errors.Join. Any other error is a
// tokenizer without the template's control tokens.
func Build(tok *tokenizer.Tokenizer, caption, lyrics string, mode Mode, config Config) (Prompt, error) {
	control, err := controlIDs(tok)
	if err != nil {
		return Prompt{}, err
	}
	if err := errors.Join(blankError("instructions", caption), blankError("lyrics", lyrics)); err != nil {
		return Prompt{}, err
	}
	var warnings []string
	if mode == Friendly {
		var moved []int
		lyrics, moved = separateTags(lyrics)
		warnings = appendLines(warnings, moved, "was moved to a line of its own")
	} else {
		warnings = appendLines(warnings, droppedLines(lyrics), "is dropped, as prompt_mode \"reference\" asks")
	}
	caption, lyrics = Clean(caption), Normalise(lyrics)
	warnings = appendUnknownTags(warnings, lyrics)
	warnings = appendControls(warnings, "instructions", tok.FindSpecials(caption))
	warnings = appendControls(warnings, "lyrics", tok.FindSpecials(lyrics))

	captionIDs, lyricsIDs := tok.Encode(caption), tok.Encode(lyrics)
	n := controls + len(captionIDs) + len(lyricsIDs)
	if n > config.MaxTokens {
		return Prompt{}, tooLong(n, len(captionIDs), len(lyricsIDs), config.MaxTokens)
	}
	ids := make([]int32, 0, n)
	ids = append(ids, control[imStart], control[captionStart])
	ids = append(ids, captionIDs...)
	ids = append(ids, control[captionEnd], control[lyricsStart])
	ids = append(ids, lyricsIDs...)
	ids = append(ids, control[lyricsEnd], control[imEnd], control[audioStart])
	return Prompt{
		Text: controlText[imStart] + controlText[captionStart] + caption + controlText[captionEnd] +
			controlText[lyricsStart] + lyrics + controlText[lyricsEnd] + controlText[imEnd] + controlText[audioStart],
		IDs:           ids,
		Unconditional: unconditional(ids, config.CFGID),
		Warnings:      warnings,
	}, nil
}

func blankError(field, text string) error {
	if !Blank(text) {
		return nil
	}
	return &FieldError{field, "is blank; write at least one visible character"}
}

// tooLong blames the longer of the two texts.
func tooLong(n, caption, lyrics, limit int) error {
	field := "lyrics"
	if caption > lyrics {
		field = "instructions"
	}
	return &FieldError{field, fmt.Sprintf(
		"the prompt has %d tokens (instructions %d, lyrics %d, template %d), the maximum is %d; shorten the %s",
		n, caption, lyrics, controls, limit, field)}
}

func unconditional(ids []int32, filler int32) []int32 {
	out := make([]int32, len(ids))
	copy(out, ids)
	for i := 1; i < len(out)-2; i++ {
		out[i] = filler
	}
	return out
}
