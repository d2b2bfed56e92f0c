package machine

type feature struct {
	name string
	has  bool
}

// present returns the names of the features there are; never nil, so that JSON shows
// an empty list.
func present(all []feature) []string {
	names := []string{}
	for _, f := range all {
		if f.has {
			names = append(names, f.name)
		}
	}
	return names
}
