package guard

import "context"

// AfterRelease calls f after each call that had its locks, when they have been given back: to publish what the work has
// done, or to start what must not be done under the lock. It gets the caller's context, which may have ended, and is called
// before observers. Several hooks are called in the order given; a panic of f is f's own, as with Observe.
func AfterRelease(f func(context.Context, Event)) Option {
	return optionFunc(func(c *config) {
		if f == nil {
			c.fault("AfterRelease without a function")
			return
		}
		c.hooks = append(c.hooks, f)
	})
}
