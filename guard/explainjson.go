package guard

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// Explain says what the named guard would do now with a call that has these facts, as Guard.Explain does, for people
// who have the request as text: facts are JSON by root, {"body": {"id": "7"}, "path": {"id": "7"}}. Info.Roots has the
// names. A fact that is not given is missing in the request, and one that the guard's template does not read may be
// wrong. The error says that there is no such guard, or that its adapter does not offer such a fact.
func (r *Registry) Explain(ctx context.Context, name string, facts map[string]json.RawMessage) (Explanation, error) {
	e, err := r.find(name)
	if err != nil {
		return Explanation{}, err
	}
	for root := range facts {
		if _, ok := e.roots[root]; !ok {
			return Explanation{}, e.spec().errorf("no fact is called %q here%s", root, suggest.Ending(root, e.info().Roots))
		}
	}
	return e.runner.Explain(ctx, func(root string) (any, error) {
		text, ok := facts[root]
		if !ok {
			return nil, fmt.Errorf("%w: %s is not given", ErrKey, root)
		}
		fact, err := e.roots[root].Decode(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrKey, root, err)
		}
		return fact, nil
	}), nil
}

// Match returns the names of the guards whose templates can make this key, in order. A guard without a template, as
// with a KeyFunc, is never among them.
func (r *Registry) Match(key string) (names []string) {
	for _, e := range r.list() {
		r := e.runner.current()
		if r.key == nil {
			continue
		}
		if _, ok := r.key.Match(key); ok {
			names = append(names, r.spec.Name)
		}
	}
	return names
}
