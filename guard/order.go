package guard

import "github.com/latchkey-go/latchkey/lock"

// noteOrder notes under which guards of its Registry the call asks for its locks. Where two guards have each come under the other, two calls can
// wait for each other, and their Registry says so the first time. Readers wait for no other readers, so they are left out. A guard of the same name
// above makes it a re-entry, whatever stands between.
func (c *call) noteOrder() {
	if c.spec.Kind == lock.Read || heldBy(c.ctx, c.spec.Name) != nil {
		return
	}
	for h := heldBy(c.ctx, ""); h != nil; h, _ = h.Context.Value(heldKey{}).(*heldContext) {
		outer := h.runner.entry
		if outer == nil || outer.registry != c.entry.registry || h.runner.spec.Kind == lock.Read || h.over.Load() {
			continue
		}
		if _, known := c.entry.outer.Load(outer); !known && c.entry.crosses(outer) && outer.registry.shared.log != nil {
			outer.registry.shared.log.WarnContext(c.ctx, "guard: two guards are taken in both orders, so two calls can wait for each other: "+
				"take them in one order, or declare both keys in one guard", "guard", c.spec.Name, "under", h.runner.spec.Name)
		}
	}
}

// crosses notes that e was taken under outer, and reports whether that is news and the other way round is known.
func (e *entry) crosses(outer *entry) bool {
	e.registry.mu.Lock()
	defer e.registry.mu.Unlock()
	_, known := e.outer.LoadOrStore(outer, true)
	_, both := outer.outer.Load(e)
	return both && !known
}
