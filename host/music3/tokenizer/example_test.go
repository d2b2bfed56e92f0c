package tokenizer_test

import (
	"fmt"
	"os"

	"skald/host/music3/tokenizer"
)

func Example() {
	data, err := os.ReadFile("testdata/tiny.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	start, _ := tok.SpecialID("<|im_start|>")
	fmt.Println(start, tok.Encode("the rain"))
	fmt.Println(len(tok.Encode("<|im_start|>")), "tokens, none of them", start)
	// Output:
	// 1001 [83 258 532]
	// 8 tokens, none of them 1001
}
