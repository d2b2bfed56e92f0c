package prompt_test

import (
	"fmt"
	"os"

	"skald/host/music3/prompt"
	"skald/host/music3/tokenizer"
)

func ExampleBuild() {
	data, err := os.ReadFile("../tokenizer/testdata/tiny.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	filler, _ := tok.SpecialID("<|vision_pad|>")
	p, err := prompt.Build(tok, "**Slow** folk", "[Verse] Walking home", prompt.Friendly,
		prompt.Config{CFGID: filler, MaxTokens: 5000})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Text)
	fmt.Println(len(p.IDs), "tokens,", p.Warnings)
	// Output:
	// <|im_start|><|caption_start|>Slow folk<|caption_end|><|lyrics_start|>[start]
	// [verse]
	// Walking home<|lyrics_end|><|im_end|><|audio_start|>
	// 20 tokens, [lyrics: text behind the section tag on line 1 was moved to a line of its own; a section tag needs a line of its own]
}

func ExampleInstrumental() {
	caption, lyrics := prompt.Instrumental("Warm jazz trio, brushed drums", 60)
	fmt.Println(caption)
	fmt.Println(lyrics)
	// Output:
	// Warm jazz trio, brushed drums. Instrumental, no vocals.
	// [intro]
	// [instrumental]
	// [solo]
	// [outro]
}
