package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// maxRows bounds a file of rows.
const maxRows = 100_000

// ReadRows reads the JSON rows of a file; lines that do not begin with a brace are
// passed over.
func ReadRows(r io.Reader) ([]Row, error) {
	var rows []Row
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		if len(rows) == maxRows {
			return nil, fmt.Errorf("line %d: more than %d rows", n, maxRows)
		}
		var row Row
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		rows = append(rows, row)
	}
	return rows, lines.Err()
}

// Compare prints, for every row of ours, how many times faster it is than each row of a
// peer with the same identity: the peer's scaled seconds over ours. A star marks rows
// that other processes disturbed; they prove nothing. It returns the number of
// comparisons.
func Compare(w io.Writer, ours, peers []Row) (int, error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "stage\twork\tdtype\tthreads\tskald s\tpeer\tpeer s\tratio")
	n := 0
	for _, a := range ours {
		for _, b := range peers {
			if a.Stage != b.Stage || a.Work != b.Work || a.DType != b.DType || a.Threads != b.Threads || a.ScaledSeconds <= 0 {
				continue
			}
			n++
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.4g%s\t%s\t%.4g%s\t%.2f\n", a.Stage, a.Work, a.DType, a.Threads,
				a.ScaledSeconds, star(a), b.Peer, b.ScaledSeconds, star(b), b.ScaledSeconds/a.ScaledSeconds)
		}
	}
	return n, t.Flush()
}

func star(r Row) string {
	if r.Disturbed {
		return "*"
	}
	return ""
}
