// Command deploy checks the files that run skald elsewhere: Dockerfiles, Compose files,
// Kubernetes manifests, alert rules and the dashboard. Each is read by the library of the
// tool that it is for, with unknown members refused. Metrics named in rules and panels
// must be among those in the file given with -metrics, a reply of a running server.
//
// It is a module of its own, so that nobody who builds skald fetches these libraries.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	promql "github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

func main() {
	dir := flag.String("dir", "docker", "folder of the files")
	metrics := flag.String("metrics", "", "file with the reply of GET /metrics")
	flag.Parse()
	known, err := readMetrics(*metrics)
	if err == nil {
		err = check(*dir, known)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check reads everything below dir and says how many things it examined.
func check(dir string, known map[string]bool) error {
	var errs []error
	examined := map[string]int{}
	kinds := map[string]func(string) (int, error){
		"*/Dockerfile":      dockerfile,
		"kubernetes/*.yaml": manifests,
		"monitoring/*.yaml": func(name string) (int, error) { return rules(name, known) },
		"monitoring/*.json": func(name string) (int, error) { return dashboard(name, known) },
	}
	for pattern, read := range kinds {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(names) == 0 {
			errs = append(errs, fmt.Errorf("no file matches %s (%v)", pattern, err))
		}
		for _, name := range names {
			n, err := read(name)
			examined[pattern] += n
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	base := filepath.Join(dir, "compose.yaml")
	for _, files := range [][]string{{base}, {base, filepath.Join(dir, "compose.cuda.yaml")}} {
		n, err := compose(files)
		examined["compose*.yaml"] += n
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", strings.Join(files, " and "), err))
		}
	}
	for pattern, n := range examined {
		fmt.Printf("%-20s %3d examined\n", pattern, n)
	}
	return errors.Join(errs...)
}

// readMetrics returns the names of a server's series.
func readMetrics(name string) (map[string]bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("-metrics: %w", err)
	}
	defer f.Close()
	known := map[string]bool{"up": true} // Prometheus makes this one
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 4 && fields[1] == "TYPE" {
			known[fields[2]] = true
			if fields[3] == "histogram" {
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					known[fields[2]+suffix] = true
				}
			}
		}
	}
	if len(known) < 10 {
		return nil, fmt.Errorf("%s lists %d metrics: it is not the reply of /metrics", name, len(known))
	}
	return known, nil
}

func dockerfile(name string) (int, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	tree, err := parser.Parse(f)
	if err != nil {
		return 0, err
	}
	for _, w := range tree.Warnings {
		err = errors.Join(err, errors.New(w.Short))
	}
	stages, _, parseErr := instructions.Parse(tree.AST, nil)
	if parseErr != nil {
		return 0, parseErr
	}
	n := 0
	for _, s := range stages {
		n += len(s.Commands)
		for _, c := range s.Commands {
			// What is copied from the folder must be there.
			if cp, ok := c.(*instructions.CopyCommand); ok && cp.From == "" {
				for _, source := range cp.SourcePaths {
					if found, _ := filepath.Glob(source); len(found) == 0 {
						err = errors.Join(err, fmt.Errorf("COPY of %q, which is not there", source))
					}
				}
			}
		}
	}
	return n, err
}

func compose(files []string) (int, error) {
	options, err := cli.NewProjectOptions(files, cli.WithoutEnvironmentResolution)
	if err != nil {
		return 0, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return 0, err
	}
	for _, s := range project.Services {
		if s.Build == nil {
			continue
		}
		if _, e := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); e != nil {
			err = errors.Join(err, e)
		}
	}
	return len(project.Services), err
}

// manifests reads the objects of a file. Kustomize's own file is the one without a kind of
// Kubernetes.
func manifests(name string) (int, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 0; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		var about struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal(text, &about); err != nil {
			return n, err
		}
		object, ok := map[string]any{
			"v1 Namespace":                                  &corev1.Namespace{},
			"v1 Service":                                    &corev1.Service{},
			"v1 ConfigMap":                                  &corev1.ConfigMap{},
			"v1 PersistentVolumeClaim":                      &corev1.PersistentVolumeClaim{},
			"apps/v1 Deployment":                            &appsv1.Deployment{},
			"apps/v1 StatefulSet":                           &appsv1.StatefulSet{},
			"batch/v1 Job":                                  &batchv1.Job{},
			"policy/v1 PodDisruptionBudget":                 &policyv1.PodDisruptionBudget{},
			"autoscaling/v2 HorizontalPodAutoscaler":        &autoscalingv2.HorizontalPodAutoscaler{},
			"networking.k8s.io/v1 NetworkPolicy":            &networkingv1.NetworkPolicy{},
			"kustomize.config.k8s.io/v1beta1 Kustomization": &types.Kustomization{},
		}[about.APIVersion+" "+about.Kind]
		if !ok {
			return n, fmt.Errorf("object %d: kind %q of %q is not one that is checked here", n+1, about.Kind, about.APIVersion)
		}
		if err := yaml.UnmarshalStrict(text, object); err != nil {
			return n, fmt.Errorf("object %d, %s: %w", n+1, about.Kind, err)
		}
		switch o := object.(type) {
		case *types.Kustomization:
			for _, r := range o.Resources {
				if _, err := os.Stat(filepath.Join(filepath.Dir(name), r)); err != nil {
					return n, err
				}
			}
		case *appsv1.Deployment:
			err = selects(o.Spec.Selector.MatchLabels, o.Spec.Template.Labels)
		case *appsv1.StatefulSet:
			err = selects(o.Spec.Selector.MatchLabels, o.Spec.Template.Labels)
		}
		if err != nil {
			return n, fmt.Errorf("object %d, %s: %w", n+1, about.Kind, err)
		}
	}
}

// selects checks that a selector finds the pods of its own template.
func selects(selector, labels map[string]string) error {
	for k, v := range selector {
		if labels[k] != v {
			return fmt.Errorf("the selector wants %s=%s, the pods have %q", k, v, labels[k])
		}
	}
	return nil
}

func rules(name string, known map[string]bool) (int, error) {
	groups, errs := rulefmt.ParseFile(name, false, model.UTF8Validation)
	if len(errs) > 0 {
		return 0, errors.Join(errs...)
	}
	n := 0
	var err error
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			n++
			if e := expression(r.Expr, known); e != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", r.Alert, e))
			}
		}
	}
	return n, err
}

func dashboard(name string, known map[string]bool) (int, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	var d struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return 0, err
	}
	n := 0
	var ids []int
	for _, p := range d.Panels {
		if slices.Contains(ids, p.ID) {
			err = errors.Join(err, fmt.Errorf("panel %q: its id %d is taken", p.Title, p.ID))
		}
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			err = errors.Join(err, fmt.Errorf("panel %q does not lie in the grid", p.Title))
		}
		ids = append(ids, p.ID)
		for _, t := range p.Targets {
			n++
			text := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(t.Expr)
			if e := expression(text, known); e != nil {
				err = errors.Join(err, fmt.Errorf("panel %q: %w", p.Title, e))
			}
		}
	}
	return n, err
}

// expression parses a query and looks for every metric in it.
func expression(text string, known map[string]bool) error {
	e, err := promql.ParseExpr(text)
	if err != nil {
		return err
	}
	promql.Inspect(e, func(n promql.Node, _ []promql.Node) error {
		if s, ok := n.(*promql.VectorSelector); ok && !known[s.Name] {
			err = errors.Join(err, fmt.Errorf("the server has no metric %s", s.Name))
		}
		return nil
	})
	return err
}
