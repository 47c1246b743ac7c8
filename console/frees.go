package console

import (
	"context"
	"net/http"
	"time"
)

const (
	mostFrees = 200 // of those that were freed by hand, on a page
	lately    = time.Hour
)

// freeView is a lock that was freed by hand.
type freeView struct {
	keyLink
	When        string
	Who, Reason string
}

// freesBody is the content of the page of freed locks.
type freesBody struct {
	Frees  []freeView
	Status statusView
}

func (h *handler) freesPage(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), freeTimeout)
	defer cancel()
	frees, err := h.client.Frees(ctx, mostFrees)
	b := freesBody{Status: statusView{Text: "Read at " + time.Now().Format(time.TimeOnly) + "."}}
	if err != nil {
		b.Status = statusView{Text: "Redis does not answer.", Bad: true, Error: errorText(err)}
	}
	for i := range frees {
		f := &frees[i]
		b.Frees = append(b.Frees, freeView{h.keyLinks([]string{f.Key})[0], f.Time.Format(time.DateTime), printable(f.Who), printable(f.Reason)})
	}
	h.render(w, http.StatusOK, "frees", frame{Title: "Freed by hand", Page: "frees", Body: b, Again: "frees"})
}
