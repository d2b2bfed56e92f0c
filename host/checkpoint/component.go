package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// weightStems are the names under which a component's weights may lie: STEM alone,
// or STEM.index.json with shards.
var weightStems = []string{"model.safetensors", "diffusion_pytorch_model.safetensors"}

const indexSuffix = ".index.json"

// component holds the open files of one folder.
type component struct {
	files   []*File
	tensors map[string]Tensor
	names   []string // file after file, by offset
	bytes   int64    // of all tensors
}

// openComponent opens the weights in a folder: one file, or an index and the
// shards it names.
func (c *Checkpoint) openComponent(folder string) (*component, error) {
	single, index, err := c.findWeights(folder)
	if err != nil {
		return nil, err
	}
	part := &component{tensors: map[string]Tensor{}}
	if single != "" {
		err = part.open(c, single)
	} else {
		err = part.openShards(c, index)
	}
	if err != nil {
		part.close()
		return nil, err
	}
	return part, nil
}

// findWeights returns either a file of weights or an index of shards.
func (c *Checkpoint) findWeights(folder string) (single, index string, err error) {
	var found []string
	for _, stem := range weightStems {
		for _, name := range []string{stem, stem + indexSuffix} {
			name = path.Join(folder, name)
			switch exists, err := c.exists(name); {
			case err != nil:
				return "", "", err
			case exists:
				found = append(found, name)
			}
		}
	}
	switch {
	case len(found) > 1:
		return "", "", fmt.Errorf("%s: which of these holds the weights? Remove what is left over: %s",
			folder, strings.Join(found, ", "))
	case len(found) == 0:
		return "", "", fmt.Errorf("%s: no weights: expected one of %s, each also with %s%s",
			folder, strings.Join(weightStems, ", "), indexSuffix, c.otherWeights(folder))
	}
	if strings.HasSuffix(found[0], indexSuffix) {
		return "", found[0], nil
	}
	return found[0], "", nil
}

// otherWeights says which files of weights lie in a folder under names that are
// not read.
func (c *Checkpoint) otherWeights(folder string) string {
	entries, _ := fs.ReadDir(c.fsys, folder)
	var others []string
	for _, e := range entries {
		switch path.Ext(e.Name()) {
		case ".safetensors", ".bin", ".pth", ".gguf":
			others = append(others, e.Name())
		}
	}
	if others == nil {
		return ""
	}
	return "; found " + strings.Join(others, ", ")
}

// open adds one file, all of whose tensors must be new.
func (part *component) open(c *Checkpoint, name string) error {
	f, err := c.openWeights(name)
	if err != nil {
		return err
	}
	part.files = append(part.files, f)
	var report problems
	for _, t := range f.tensors {
		if before, ok := part.tensors[t.Name]; ok {
			report.add("%s: tensor %q is also in %s", name, t.Name, before.File)
			continue
		}
		part.tensors[t.Name] = t
		part.names = append(part.names, t.Name)
		part.bytes += int64(len(t.Data))
	}
	return report.err()
}

// openShards opens the shards of an index and compares what it says with what
// they hold.
func (part *component) openShards(c *Checkpoint, index string) error {
	data, err := c.readSettings(index)
	if err != nil {
		return err
	}
	shardOf, err := parseIndex(index, data)
	if err != nil {
		return err
	}
	folder := path.Dir(index)
	shards := map[string]bool{}
	for _, shard := range shardOf {
		shards[shard] = true
	}
	var report problems
	for _, shard := range sortedKeys(shards) {
		report.include(part.open(c, path.Join(folder, shard)))
	}
	if err := report.err(); err != nil {
		return err
	}
	for _, name := range sortedKeys(shardOf) {
		want := c.displayName(path.Join(folder, shardOf[name]))
		if t, ok := part.tensors[name]; !ok {
			report.add("%s: tensor %q is not in its shard %s", index, name, shardOf[name])
		} else if t.File != want {
			report.add("%s: tensor %q is said to be in %s, but is in %s", index, name, want, t.File)
		}
	}
	for _, name := range part.names {
		if _, ok := shardOf[name]; !ok {
			report.add("%s: tensor %q is not in the index %s", part.tensors[name].File, name, index)
		}
	}
	return report.err()
}

// parseIndex reads the weight_map of an index file: the shard of each tensor.
func parseIndex(file string, data []byte) (map[string]string, error) {
	var report problems
	o, err := parseObject(file, data, &report)
	if err != nil {
		return nil, err
	}
	weights := o.child("weight_map")
	if weights == nil {
		o.missing("weight_map", "an object that gives the shard of each tensor")
		return nil, report.err()
	}
	shardOf := make(map[string]string, len(weights.members))
	for _, name := range sortedKeys(weights.members) {
		shard := weights.text(name)
		if kind := weights.members[name].Kind(); (kind == '"' || kind == 'n') && !isFileName(shard) {
			weights.wrong(name, weights.members[name], "the name of a file in the same folder")
		}
		shardOf[name] = shard
	}
	if err := report.err(); err != nil {
		return nil, err
	}
	return shardOf, nil
}

// isFileName reports whether s names a file without leading to another folder, on
// any system.
func isFileName(s string) bool {
	return fs.ValidPath(s) && s != "." && !strings.ContainsAny(s, `/\:`)
}

func (part *component) close() error {
	var errs []error
	for _, f := range part.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
