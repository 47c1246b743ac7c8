package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/safe"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/spf13/cobra"
)

// app is one run of the program: its files, and the flags that all commands share.
type app struct {
	in, err *os.File
	out     *output
	environ []string

	url     string
	output  string
	timeout time.Duration
	fast    bool // of commands that look at many locks
	secrets

	started bool // the arguments were understood
}

// output remembers that something could not be written, such as on a full disk: a list that ends early is no success.
type output struct {
	*os.File
	failed error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
}

const (
	outputText = "text"
	outputJSON = "json"
)

// run runs the command that the arguments name, and returns the exit status.
func (a *app) run(args []string) int {
	hushRedis()
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	ctx, stop := a.interruptible(context.Background())
	defer stop()
	err := root.ExecuteContext(ctx)
	switch cause := context.Cause(ctx); {
	case err == nil && a.out.failed == nil:
		return statusOK
	case err == nil:
		err = a.out.failed
	case cause != nil && errors.Is(err, context.Canceled):
		err = cause
	case !a.started:
		if wantsJSON(args) { // also if that stands behind the mistake
			a.output = outputJSON
		}
		if _, ours := errors.AsType[*exit](err); !ours {
			err = usage("%w", err) // cobra's
		}
	}
	e := exitOf(err)
	if e.err != nil {
		a.say(e.event, e.status, safe.Lines(e.Error()), nil)
	}
	return e.status
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "latchkey",
		Short: "Run commands under distributed locks, and look after these locks",
		Long: `Latchkey takes, shows and frees the locks in Redis that Latchkey's services in Go and Redisson's in Java share.

The server is named by --redis or the variable LATCHKEY_REDIS_URL:

  redis://user:password@host:6379/0                       one server; rediss:// for TLS
  redis://host1:6379?addr=host2:6379                      a cluster, by some of its nodes
  redis://sentinel1:26379?master_name=main&addr=host:26379   what sentinels call "main"

A password is better off in the variable: others on the host can read the arguments of a process.

Keys and names are shown as they are if a terminal can show them, and as a quoted string of Go otherwise.
With -o json they come whole, one JSON document a line, and messages on stderr are JSON, too.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			a.started = true
			return a.check()
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.url, "redis", "", "URL of Redis; LATCHKEY_REDIS_URL without it, or else redis://localhost:6379")
	flags.StringVarP(&a.output, "output", "o", outputText, "what to print: text or json")
	flags.DurationVar(&a.timeout, "timeout", redisson.DefaultTimeout, "how long Redis may take to answer")
	flags.StringVar(&a.ca, "cacert", "", "file with the certificates of the authorities that rediss:// trusts, in PEM; those of this host without it")
	flags.StringVar(&a.cert, "cert", "", "file with the certificate that a server with TLS asks for, in PEM")
	flags.StringVar(&a.certKey, "cert-key", "", "file with the key of --cert")
	flags.StringVar(&a.password, "password-file", "", "file with the password; it is read with each connection")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{outputText, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage("%w; see %s --help", err, c.CommandPath()) })
	root.AddCommand(a.runCommand(), a.leadCommand(), a.lsCommand(), a.topCommand(), a.showCommand(), a.freeCommand(), a.freesCommand(), a.holdCommand(), a.watchCommand(),
		a.explainCommand(), a.decodeCommand(), a.doctorCommand(), a.consoleCommand())
	root.InitDefaultCompletionCmd() // now, as strict is for it, too
	root.SetHelpCommand(helpCommand())
	strict(root)
	return root
}

// wantsJSON reports whether the arguments in front of -- ask for JSON.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	line := strings.Join(args, "\x00")
	for _, flag := range []string{"-ojson", "-o=json", "-o\x00json", "--output=json", "--output\x00json"} {
		if strings.Contains("\x00"+line+"\x00", "\x00"+flag+"\x00") {
			return true
		}
	}
	return false
}

// helpCommand is cobra's, but that what it does not know is a mistake.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Args: func(c *cobra.Command, args []string) error {
			_, _, err := c.Root().Find(args)
			return err
		},
		RunE: func(c *cobra.Command, args []string) error {
			about, _, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// strict has a mistake in the arguments of any command end with the status of usage, and a command that has only others below it
// refuse what it does not know.
func strict(c *cobra.Command) {
	if c.HasParent() && !c.Runnable() { // or cobra would show the help, and be content
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usage("%w; see %s --help", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// check looks at the flags that all commands share.
func (a *app) check() error {
	switch {
	case a.output != outputText && a.output != outputJSON:
		return usage("--output %q: want text or json", a.output)
	case a.timeout < time.Millisecond:
		return usage("--timeout %v is under 1ms", a.timeout)
	}
	return a.secrets.check()
}

func (a *app) json() bool { return a.output == outputJSON }

// say prints a message on stderr.
func (a *app) say(event string, status int, message string, more map[string]any) {
	if !a.json() {
		fmt.Fprintf(a.err, "latchkey: %s\n", message)
		return
	}
	doc := map[string]any{"event": event, "message": message}
	if status != 0 {
		doc["status"] = status
	}
	maps.Copy(doc, more)
	line, err := json.Marshal(doc)
	if err != nil {
		line = []byte(`{"event":"internal"}`)
	}
	fmt.Fprintf(a.err, "%s\n", line)
}

// print writes a document of JSON as one line.
func (a *app) print(doc any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(doc)
}

func (a *app) getenv(name string) string {
	for _, entry := range a.environ {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}

// version is that of the module, if it was built from one that has one.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
