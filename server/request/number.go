package request

import (
	"errors"
	"strconv"
	"strings"
)

var (
	errFraction = errors.New("not a whole number")
	errRange    = errors.New("out of range")
)

// parseInteger reads a JSON number as a whole number from 0 to 2^64-1, digit by
// digit, so that none of the 64 bits is lost to a float and an exponent of any size
// costs nothing. The literal must be valid JSON.
func parseInteger(literal string) (uint64, error) {
	unsigned, negative := strings.CutPrefix(literal, "-")
	mantissa, exponent := unsigned, 0
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		mantissa = unsigned[:i]
		// Atoi gives the nearest int when the exponent does not fit; the bound keeps the
		// sum below from overflowing.
		exponent, _ = strconv.Atoi(unsigned[i+1:])
		exponent = min(max(exponent, -1<<30), 1<<30)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")

	digits := strings.TrimRight(whole+fraction, "0")
	significant := strings.TrimLeft(digits, "0")
	if significant == "" {
		return 0, nil
	}
	// The value is 0.significant times ten to the power of point.
	point := len(whole) + exponent - (len(digits) - len(significant))
	if len(significant) > point {
		return 0, errFraction
	}
	if negative || point > len("18446744073709551615") {
		return 0, errRange
	}
	n, err := strconv.ParseUint(significant+strings.Repeat("0", point-len(significant)), 10, 64)
	if err != nil {
		return 0, errRange
	}
	return n, nil
}

// parseNumber reads a JSON number as a float64. -0 becomes 0.
func parseNumber(literal string) (float64, error) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return 0, errRange
	}
	return f + 0, nil
}
