package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/pflag"
)

// TestDeployFiles holds the files that run skald for others against the program: every flag
// of serve and every variable that they name must exist.
func TestDeployFiles(t *testing.T) {
	flags, variables := map[string]bool{}, map[string]bool{"SKALD_MODEL_DIR": true} // compose's own
	serve, _, err := newRoot().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		flags["--"+f.Name] = true
		variables[environmentName(f.Name)] = true
	})
	arguments := regexp.MustCompile(`\[serve[^\]]*\]|ExecStart=[^\n]*`)
	flag, variable := regexp.MustCompile(`--[a-z][a-z-]+`), regexp.MustCompile(`SKALD_[A-Z_]*[A-Z]`)
	var seenFlags, seenVariables int
	if err := filepath.WalkDir(filepath.Join("..", "..", "docker"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, list := range arguments.FindAllString(string(data), -1) {
			for _, name := range flag.FindAllString(list, -1) {
				if seenFlags++; !flags[name] {
					t.Errorf("%s: serve has no flag %s", path, name)
				}
			}
		}
		for _, name := range variable.FindAllString(string(data), -1) {
			if seenVariables++; !variables[name] {
				t.Errorf("%s: nothing reads the variable %s", path, name)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if seenFlags < 4 || seenVariables < 10 {
		t.Errorf("only %d flags and %d variables were found", seenFlags, seenVariables)
	}
	t.Logf("%d flags, %d variables", seenFlags, seenVariables)
}
