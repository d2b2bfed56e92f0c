package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// nfcAge is the Unicode version of the normalizer inside the reference
// tokenizer (the Rust library "tokenizers" 0.23), found by asking it for every
// combining mark and every decomposition: it knows all of Unicode 9.0 and
// nothing later, while its regular expressions follow 16.0. Characters once
// assigned never change their decomposition or combining class, so the tables
// of 9.0 are those of 16.0 without the younger characters.
const nfcAge = "9.0"

// char is one character of UnicodeData.txt.
type char struct {
	category string
	class    uint8
	parts    []rune // canonical decomposition
	lower    rune   // simple lower case, 0 if none
}

// ucd is what the tables need of the Unicode Character Database.
type ucd struct {
	chars    map[rune]char
	age      map[rune]string
	property map[string][]rune
	excluded map[rune]bool // from composition
}

func readUCD(dir string) (*ucd, error) {
	db := &ucd{map[rune]char{}, map[rune]string{}, map[string][]rune{}, map[rune]bool{}}
	if err := db.readUnicodeData(filepath.Join(dir, "UnicodeData.txt")); err != nil {
		return nil, err
	}
	for _, name := range []string{"DerivedAge.txt", "DerivedCoreProperties.txt", "PropList.txt", "CompositionExclusions.txt"} {
		err := eachLine(filepath.Join(dir, name), func(fields []string) error {
			lo, hi, err := parseRange(fields[0])
			if err != nil {
				return err
			}
			for r := lo; r <= hi; r++ {
				switch name {
				case "DerivedAge.txt":
					db.age[r] = fields[1]
				case "CompositionExclusions.txt":
					db.excluded[r] = true
				default:
					db.property[fields[1]] = append(db.property[fields[1]], r)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return db, nil
}

func (db *ucd) readUnicodeData(path string) error {
	var first rune
	return eachLine(path, func(f []string) error {
		if len(f) < 14 {
			return fmt.Errorf("%d fields, want 15", len(f))
		}
		r, _, err := parseRange(f[0])
		if err != nil {
			return err
		}
		class, err := strconv.ParseUint(f[3], 10, 8)
		if err != nil {
			return err
		}
		c := char{category: f[2], class: uint8(class)}
		if f[5] != "" && f[5][0] != '<' {
			for _, part := range strings.Fields(f[5]) {
				p, _, err := parseRange(part)
				if err != nil {
					return err
				}
				c.parts = append(c.parts, p)
			}
		}
		if f[13] != "" {
			if c.lower, _, err = parseRange(f[13]); err != nil {
				return err
			}
		}
		switch {
		case strings.HasSuffix(f[1], ", First>"):
			first = r
		case strings.HasSuffix(f[1], ", Last>"):
			for ; first < r; first++ {
				db.chars[first] = c
			}
		}
		db.chars[r] = c
		return nil
	})
}

// eachLine calls f with the trimmed fields of every line that is not empty or a
// comment.
func eachLine(path string, f func(fields []string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	scan := bufio.NewScanner(file)
	for n := 1; scan.Scan(); n++ {
		line, _, _ := strings.Cut(scan.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields := strings.Split(line, ";")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if err := f(fields); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return scan.Err()
}

// parseRange reads "0041" or "0041..005A".
func parseRange(s string) (lo, hi rune, err error) {
	a, b, isRange := strings.Cut(s, "..")
	if !isRange {
		b = a
	}
	x, err := strconv.ParseUint(a, 16, 21)
	if err != nil {
		return 0, 0, err
	}
	y, err := strconv.ParseUint(b, 16, 21)
	return rune(x), rune(y), err
}

// runes returns the assigned characters that satisfy keep, in order.
func (db *ucd) runes(keep func(char) bool) []rune {
	var out []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if c, ok := db.chars[r]; ok && keep(c) {
			out = append(out, r)
		}
	}
	return out
}

type classRange struct {
	lo, hi rune
	class  uint8
}

type decomposition struct{ whole, first, second rune }

// normalization is the data of NFC.
type normalization struct {
	mayChange      []rune
	classes        []classRange
	decompositions []decomposition // by whole
	compositions   []decomposition // by first, second
}

// normalization returns the data of NFC for the characters up to a version.
func (db *ucd) normalization(upTo string) normalization {
	var n normalization
	change := map[rune]bool{}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		c, ok := db.chars[r]
		if !ok || newer(db.age[r], upTo) {
			continue
		}
		if c.class != 0 {
			change[r] = true
			if last := len(n.classes) - 1; last >= 0 && n.classes[last].hi == r-1 && n.classes[last].class == c.class {
				n.classes[last].hi = r
			} else {
				n.classes = append(n.classes, classRange{r, r, c.class})
			}
		}
		if len(c.parts) == 0 {
			continue
		}
		d := decomposition{whole: r, first: c.parts[0]}
		if len(c.parts) == 2 {
			d.second = c.parts[1]
		}
		n.decompositions = append(n.decompositions, d)
		// Full_Composition_Exclusion: the listed ones, singletons, non-starters.
		if db.excluded[r] || d.second == 0 || c.class != 0 || db.chars[d.first].class != 0 {
			change[r] = true
			continue
		}
		n.compositions = append(n.compositions, d)
		change[d.second] = true
	}
	for r := rune(0x1161); r <= 0x1175; r++ { // Hangul vowels
		change[r] = true
	}
	for r := rune(0x11A8); r <= 0x11C2; r++ { // Hangul final consonants
		change[r] = true
	}
	for r := range change {
		n.mayChange = append(n.mayChange, r)
	}
	slices.SortFunc(n.compositions, func(a, b decomposition) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second))
	})
	return n
}

// newer tells whether version a lies behind version b ("10.0" behind "9.0").
func newer(a, b string) bool {
	aMajor, aMinor, _ := strings.Cut(a, ".")
	bMajor, bMinor, _ := strings.Cut(b, ".")
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	return cmp.Or(cmp.Compare(number(aMajor), number(bMajor)), cmp.Compare(number(aMinor), number(bMinor))) > 0
}
