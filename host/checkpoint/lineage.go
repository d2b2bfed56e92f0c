package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const modularIndex = "modular_model_index.json"

// resolve returns the folder that holds the files, and the name to call the
// checkpoint.
func resolve(dir string) (root, name string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", "", err
	}
	if !info.IsDir() {
		return "", "", errors.New(describeFile(dir))
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	root, err = snapshot(dir)
	if err != nil {
		return "", "", err
	}
	// models--OWNER--NAME, or snapshots/REVISION in it
	for _, folder := range []string{abs, filepath.Dir(filepath.Dir(abs))} {
		if repo, ok := strings.CutPrefix(filepath.Base(folder), "models--"); ok {
			parts := strings.Split(repo, "--")
			return root, parts[len(parts)-1], nil
		}
	}
	return root, filepath.Base(abs), nil
}

// snapshot returns the folder of files in a model's folder of a Hub cache: the
// revision that refs/main names, or the only one. Any other folder is returned as
// it is.
func snapshot(dir string) (string, error) {
	const maxRevision = 1 << 10
	within := filepath.Join(dir, "snapshots")
	revisions, err := os.ReadDir(within)
	if err != nil {
		return dir, nil
	}
	if f, err := os.Open(filepath.Join(dir, "refs", "main")); err == nil {
		defer f.Close()
		main, err := readBounded(f, maxRevision)
		if err != nil {
			return "", err
		}
		root := filepath.Join(within, filepath.Base(strings.TrimSpace(string(main))))
		if _, err := os.Stat(root); err != nil {
			return "", fmt.Errorf("refs/main names a snapshot that is not there: is the download complete? %w", err)
		}
		return root, nil
	}
	if len(revisions) != 1 {
		return "", fmt.Errorf("%s holds %d snapshots and no refs/main: name one of the folders in it", within, len(revisions))
	}
	return filepath.Join(within, revisions[0].Name()), nil
}

// recognise returns nil for the diffusers layout, else an error that says what the
// folder seems to hold.
func (c *Checkpoint) recognise() error {
	exists, err := c.exists(modularIndex)
	if err != nil {
		return err
	}
	if exists {
		return c.checkIndex()
	}
	var missing []string
	for _, folder := range Components() {
		config := folder + "/config.json"
		switch exists, err := c.exists(config); {
		case err != nil:
			return err
		case !exists:
			missing = append(missing, config)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if other := c.otherLineage(); other != "" {
		return fmt.Errorf("this is the %s, which is not supported yet: use the diffusers folders (%s)",
			other, modularIndex)
	}
	if len(missing) < len(Components()) {
		return fmt.Errorf("incomplete diffusers folders: %s missing", strings.Join(missing, ", "))
	}
	return fmt.Errorf("no checkpoint recognised: expected %s or the folders %s",
		modularIndex, strings.Join(Components(), ", "))
}

// checkIndex refuses the index of another pipeline.
func (c *Checkpoint) checkIndex() error {
	data, err := c.readSettings(modularIndex)
	if err != nil {
		return err
	}
	var report problems
	o, err := parseObject(modularIndex, data, &report)
	if err != nil {
		return err
	}
	if class := o.text("_class_name"); class != "" && class != pipelineClass {
		o.report.add("%s: _class_name is %q, expected %s: another model", modularIndex, clip(class), pipelineClass)
	}
	return report.err()
}

// otherLineage names the packaging that a folder holds instead, or "".
func (c *Checkpoint) otherLineage() string {
	for _, name := range []string{"qwen_7B", "flowmatching_vae.pth", "dav.pth"} {
		if exists, _ := c.exists(name); exists {
			return fmt.Sprintf("native packaging (%s)", name)
		}
	}
	if data, err := c.readSettings("config.json"); err == nil {
		var report problems
		if o, err := parseObject("config.json", data, &report); err == nil && o.child("quantization") != nil {
			return "MLX packaging (quantization in config.json)"
		}
	}
	for _, pattern := range []string{"*.gguf", "*.safetensors"} {
		names, _ := fs.Glob(c.fsys, pattern)
		for _, name := range names {
			if other := c.fileLineage(name); other != "" {
				return other
			}
		}
	}
	return ""
}

func (c *Checkpoint) fileLineage(name string) string {
	f, err := c.fsys.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	return lineageOf(name, f)
}

// lineageOf names the packaging of a GGUF or safetensors file by what stands near
// its beginning, or "". It serves an error message only, so it looks for the
// telling names instead of parsing.
func lineageOf(name string, r io.Reader) string {
	const most = 4 << 20
	head, _ := io.ReadAll(io.LimitReader(r, most))
	holds := func(s string) bool { return bytes.Contains(head, []byte(s)) }
	comfy := holds("diffusion_transformer.") && holds("latent_conditioners.")
	switch gguf := bytes.HasPrefix(head, []byte("GGUF")); {
	case gguf && holds("audiocpp.model_spec.family"):
		return fmt.Sprintf("audio-cpp GGUF packaging (%s)", name)
	case gguf && holds("mm3.model"):
		return fmt.Sprintf("mm3 GGUF packaging (%s)", name)
	case gguf && comfy:
		return fmt.Sprintf("ComfyUI GGUF packaging (%s)", name)
	case gguf:
		return fmt.Sprintf("GGUF packaging of a model that is not known here (%s)", name)
	case comfy:
		return fmt.Sprintf("ComfyUI packaging (%s)", name)
	}
	return ""
}

// describeFile says what is wrong with a path that is no folder.
func describeFile(path string) string {
	lineage := ""
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		lineage = lineageOf(filepath.Base(path), f)
	}
	if lineage != "" {
		return fmt.Sprintf("%s: this is the %s, which is not supported yet: use the diffusers folders (%s)",
			path, lineage, modularIndex)
	}
	return fmt.Sprintf("%s is a file, expected the folder of a checkpoint", path)
}
