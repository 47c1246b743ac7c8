package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

//go:embed web
var web embed.FS

// pages are the templates of all pages, and of their parts that change.
var pages = template.Must(template.New("").Funcs(template.FuncMap{"thousands": thousands}).ParseFS(web, "web/*.html"))

// thousands writes a number with commas.
func thousands(n any) string {
	text := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 && text[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// render answers with a page. Nothing is sent before all of it is there.
func (h *handler) render(w http.ResponseWriter, status int, name string, f frame) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, f); err != nil {
		h.log.Error("console: page", "page", name, "error", err)
		http.Error(w, "This page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // whoever is not there any more needs no answer
}

// fragment is the part of a page that changes.
func (h *handler) fragment(name string, body any) []byte {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, body); err != nil {
		h.log.Error("console: part of a page", "part", name, "error", err)
	}
	return b.Bytes()
}

const reloadSeconds = 10

// reload lets a page come again by itself in a browser without JavaScript, if its visitor wants that.
func (f *frame) reload(r *http.Request) {
	if r.URL.Query().Has("every") {
		f.Every = reloadSeconds
	}
	again := linkTo(f.Again)
	f.Other = again.with("every", strconv.Itoa(reloadSeconds)).URL()
}
