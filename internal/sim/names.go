package sim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names tells how to make comparable what is said in two runs of one seed.
type Names struct {
	// ID finds the ids of holders in an argument. A client may number them in the order in which its goroutines run, so
	// they are called by the order in which they first appear. Arguments that are no text are ids, too.
	ID *regexp.Regexp
	// Script names a script by its text. Without a name it is called by its digest.
	Script func(text string) string
}

type namer struct {
	Names
	scripts map[string]string // by digest
	ids     map[string]string
	counts  map[int]int // of the ids of each client
}

func newNamer(n Names) *namer {
	return &namer{Names: n, scripts: map[string]string{}, ids: map[string]string{}, counts: map[int]int{}}
}

// peek is text, but does not give names to ids that have none yet.
func (n *namer) peek(m *message) string { return n.say(m, func(string) string { return "?" }) }

// text is what a message says.
func (n *namer) text(m *message) string {
	return n.say(m, func(id string) string { return n.name(m.client, id) })
}

func (n *namer) say(m *message, unknown func(id string) string) string {
	parts := make([]string, len(m.commands))
	for i, args := range m.commands {
		parts[i] = n.sentence(args, unknown)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// command is the text of one command that was run.
func (n *namer) command(client int, args []string) string {
	return n.sentence(args, func(id string) string { return n.name(client, id) })
}

// sentence is what a command says: of a script its name, the first key and the first argument. The others are no part of
// it, as some of them are numbered by all goroutines of a client together.
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

// digest names a script by its text, and returns the digest.
func (n *namer) digest(text string) string {
	sum := sha1.Sum([]byte(text))
	digest := hex.EncodeToString(sum[:])
	if _, known := n.scripts[digest]; !known && n.Script != nil {
		n.scripts[digest] = n.Script(text)
	}
	return digest
}

// learn does nothing yet.
func (n *namer) learn([]string, string) {}

func (n *namer) replace(text string, unknown func(id string) string) string {
	if binary(text) {
		return n.known(text, unknown)
	}
	if n.ID == nil {
		return text
	}
	return n.ID.ReplaceAllStringFunc(text, func(id string) string { return n.known(id, unknown) })
}

func (n *namer) known(id string, unknown func(id string) string) string {
	if name := n.ids[id]; name != "" {
		return name
	}
	return unknown(id)
}

// name gives an id a name: that of the client which used it first, and a number.
func (n *namer) name(client int, id string) string {
	n.counts[client]++
	name := fmt.Sprintf("%c%d", 'a'+client, n.counts[client])
	n.ids[id] = name
	return name
}

func binary(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\ufffd' || r > '~' })
}
