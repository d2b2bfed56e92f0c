package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Bounds of the files that are read as a whole. The largest are a tokenizer of
// about 11 MB, and an index of some 100 bytes for each tensor.
const (
	maxReadFile = 64 << 20
	maxSettings = 4 << 20
)

// Checkpoint is an open model. Several goroutines may use it at once, until one of
// them calls Close.
type Checkpoint struct {
	Name     string // the manifest's, or the folder's
	Config   Config
	Manifest Manifest

	dir        string // "" when the files do not lie in a folder
	fsys       fs.FS
	components map[string]*component
}

// Open opens the checkpoint in a folder: the diffusers layout, also when another
// packaging of the same weights lies beside it, also through the symlinks of a
// Hub cache. dir may be the cache's own folder of the model (models--NAME).
//
// The weights are mapped and their headers read, the settings are checked against
// each other; the tensors are not yet compared with the settings, which Check
// does. The error of an incomplete or foreign folder says what it seems to be and
// lists everything that is wrong.
func Open(dir string) (*Checkpoint, error) {
	root, name, err := resolve(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return open(&Checkpoint{Name: name, dir: root, fsys: os.DirFS(root)}, dir)
}

// OpenFS opens a checkpoint that lies at the root of a file system, as when it is
// built into the program. The weights are read, not mapped.
func OpenFS(fsys fs.FS, name string) (*Checkpoint, error) {
	return open(&Checkpoint{Name: name, fsys: fsys}, name)
}

func open(c *Checkpoint, where string) (*Checkpoint, error) {
	if err := c.load(); err != nil {
		c.Close()
		return nil, fmt.Errorf("checkpoint %s: %w", where, err)
	}
	return c, nil
}

func (c *Checkpoint) load() error {
	if err := c.recognise(); err != nil {
		return err
	}
	var report problems
	report.include(c.readManifest())
	config, err := readConfig(c.readSettings)
	report.include(err)
	c.Config = config
	c.components = map[string]*component{}
	for _, folder := range Components() {
		part, err := c.openComponent(folder)
		if err != nil {
			report.include(err)
			continue
		}
		c.components[folder] = part
	}
	return report.err()
}

func (c *Checkpoint) readManifest() error {
	exists, err := c.exists(manifestFile)
	if err != nil || !exists {
		return err
	}
	data, err := c.readSettings(manifestFile)
	if err != nil {
		return err
	}
	c.Manifest, err = parseManifest(data)
	if c.Manifest.Name != "" {
		c.Name = c.Manifest.Name
	}
	return err
}

// Tensor returns a tensor of a component, by its name in the diffusers layout.
func (c *Checkpoint) Tensor(component, name string) (Tensor, bool) {
	part := c.components[component]
	if part == nil {
		return Tensor{}, false
	}
	t, ok := part.tensors[name]
	return t, ok
}

// Names lists a component's tensors, file after file, in the order in which they
// lie there.
func (c *Checkpoint) Names(component string) []string {
	part := c.components[component]
	if part == nil {
		return nil
	}
	return append([]string(nil), part.names...)
}

// Bytes returns the bytes of all tensors.
func (c *Checkpoint) Bytes() int64 {
	var sum int64
	for _, part := range c.components {
		sum += part.bytes
	}
	return sum
}

// ComponentBytes returns the bytes of one component's tensors.
func (c *Checkpoint) ComponentBytes(component string) int64 {
	if part := c.components[component]; part != nil {
		return part.bytes
	}
	return 0
}

// ReadFile reads a file of the checkpoint, of at most 64 MiB. The name is relative
// and has forward slashes, such as "tokenizer/tokenizer.json".
func (c *Checkpoint) ReadFile(name string) ([]byte, error) {
	data, err := c.readFile(name, maxReadFile)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", c.Name, err)
	}
	return data, nil
}

// readSettings reads a file of settings or an index.
func (c *Checkpoint) readSettings(name string) ([]byte, error) {
	return c.readFile(name, maxSettings)
}

func (c *Checkpoint) readFile(name string, most int64) ([]byte, error) {
	f, err := c.fsys.Open(name)
	if err != nil {
		return nil, c.fileError(name, err)
	}
	defer f.Close()
	data, err := readBounded(f, most)
	if err != nil {
		return nil, c.fileError(name, err)
	}
	return data, nil
}

// readBounded reads everything, which must be at most so many bytes.
func readBounded(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes, expected at most that", most)
	}
	return data, err
}

// Close releases the weights. No tensor may be used afterwards.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, part := range c.components {
		errs = append(errs, part.close())
	}
	c.components = nil
	return errors.Join(errs...)
}

// openWeights opens a safetensors file of the checkpoint.
func (c *Checkpoint) openWeights(name string) (*File, error) {
	if c.dir == "" {
		data, err := fs.ReadFile(c.fsys, name)
		if err != nil {
			return nil, c.fileError(name, err)
		}
		return parseFile(name, data)
	}
	f, err := openFile(c.displayName(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, c.fileError(name, err)
	}
	return f, err
}

// displayName is the name of a file in errors and in Tensor.File.
func (c *Checkpoint) displayName(name string) string {
	if c.dir == "" {
		return name
	}
	return filepath.Join(c.dir, filepath.FromSlash(name))
}

// exists reports whether a file is there. A symlink that leads nowhere is an
// error.
func (c *Checkpoint) exists(name string) (bool, error) {
	_, err := fs.Stat(c.fsys, name)
	if errors.Is(err, fs.ErrNotExist) && !c.dangling(name) {
		return false, nil
	}
	if err != nil {
		return false, c.fileError(name, err)
	}
	return true, nil
}

// dangling reports whether name is a symlink to a file that is not there.
func (c *Checkpoint) dangling(name string) bool {
	if c.dir == "" {
		return false
	}
	info, err := os.Lstat(c.displayName(name))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// fileError says what is wrong with a file that cannot be opened or read.
func (c *Checkpoint) fileError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if c.dangling(name) {
			return fmt.Errorf("%s is a link to a file that is not there: is the download complete? (%w)", name, fs.ErrNotExist)
		}
		return fmt.Errorf("%s is missing (%w)", name, fs.ErrNotExist)
	}
	return fmt.Errorf("%s: %w", name, err)
}
