package sim

import (
	"crypto/sha1" // as Redis does
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names makes the messages of two runs of one seed comparable.
type Names struct {
	// ID finds the ids of holders in an argument. A client may number them in the order in which its goroutines run, so they
	// are called by the order in which they first appear. An argument that is no text is an id, too.
	ID *regexp.Regexp
	// Script names a script by its text. Without a name it is called by its digest.
	Script func(text string) string
}

// namer gives names to scripts and ids.
type namer struct {
	Names
	scripts map[string]string // by digest
	ids     map[string]string
	counts  map[int]int // of the ids of each client
}

func newNamer(n Names) *namer {
	return &namer{Names: n, scripts: map[string]string{}, ids: map[string]string{}, counts: map[int]int{}}
}

// text is the text of a message.
func (n *namer) text(m *message) string {
	return n.say(m, func(id string) string { return n.name(m.client, id) })
}

// peek is text, but gives no names to ids that have none.
func (n *namer) peek(m *message) string { return n.say(m, func(string) string { return "?" }) }

func (n *namer) say(m *message, unknown func(id string) string) string {
	parts := make([]string, len(m.commands))
	for i, args := range m.commands {
		parts[i] = n.sentence(args, unknown)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// command is the text of one command.
func (n *namer) command(client int, args []string) string {
	return n.sentence(args, func(id string) string { return n.name(client, id) })
}

// sentence is what a command says: of a script its name, the first key and the first argument. The others are no part of
// it: some are numbers that all goroutines of a client count up together.
func (n *namer) sentence(args []string, unknown func(id string) string) string {
	if !isScript(args) {
		return n.replace(strings.Join(args, " "), unknown)
	}
	words := []string{n.script(args)}
	keys, _ := strconv.Atoi(args[2])
	for _, at := range []int{3, 3 + keys} {
		if at < len(args) {
			words = append(words, n.replace(args[at], unknown))
		}
	}
	return strings.Join(words, " ")
}

func isScript(args []string) bool {
	return len(args) > 2 && (strings.EqualFold(args[0], "eval") || strings.EqualFold(args[0], "evalsha"))
}

// script is the name of the script in a command, or the command.
func (n *namer) script(args []string) string {
	if !isScript(args) {
		return args[0]
	}
	digest := args[1]
	if strings.EqualFold(args[0], "eval") {
		digest = n.digest(args[1])
	}
	if name := n.scripts[digest]; name != "" {
		return name
	}
	return digest[:min(8, len(digest))]
}

// digest returns the digest of a script, and names the script.
func (n *namer) digest(text string) string {
	sum := sha1.Sum([]byte(text))
	digest := hex.EncodeToString(sum[:])
	if _, known := n.scripts[digest]; !known && n.Script != nil {
		n.scripts[digest] = n.Script(text)
	}
	return digest
}

// replace puts names in the place of ids.
func (n *namer) replace(text string, unknown func(id string) string) string {
	known := func(id string) string {
		if name := n.ids[id]; name != "" {
			return name
		}
		return unknown(id)
	}
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return known(text)
	case n.ID == nil:
		return text
	}
	return n.ID.ReplaceAllStringFunc(text, known)
}

// name gives an id a name, by the client that says it first.
func (n *namer) name(client int, id string) string {
	n.counts[client]++
	name := fmt.Sprintf("%c%d", 'a'+client, n.counts[client])
	n.ids[id] = name
	return name
}
