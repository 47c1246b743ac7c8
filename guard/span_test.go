package guard

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// TestSpansForNobodyAreFree holds that a span which nobody can see costs nothing, and that the global stand-in is asked
// for one now and then.
func TestSpansForNobodyAreFree(t *testing.T) {
	l := newLabels(Spec{Name: "a", Key: "b"})
	for _, p := range []trace.TracerProvider{nil, otel.GetTracerProvider(), noop.NewTracerProvider()} {
		synctest.Test(t, func(t *testing.T) {
			s := newSpans(p)
			for second := range 3 {
				if _, first := s.start(t.Context(), l); (first == nil) != s.never {
					t.Errorf("%T, second %d: asked for a span: %v", p, second, first != nil)
				}
				if got := testing.AllocsPerRun(100, func() {
					if ctx, span := s.start(t.Context(), l); span != nil || ctx != t.Context() {
						t.Errorf("%T, second %d: a span for nobody", p, second)
					}
				}); got != 0 {
					t.Errorf("%T: %v allocations", p, got)
				}
				time.Sleep(askEvery)
				synctest.Wait()
			}
		})
	}
}

// attached is the stand-in's tracer with instrumentation from outside of the program.
type attached struct {
	noop.Tracer
	records bool
	asked   int
}

func (a *attached) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	a.asked++
	if a.records {
		return ctx, recording{}
	}
	return a.Tracer.Start(ctx, name, opts...)
}

type recording struct{ noop.Span }

func (recording) IsRecording() bool { return true }

// TestSpansForInstrumentationFromOutside holds that all spans start from when the stand-in's are recorded, until they are
// not anymore.
func TestSpansForInstrumentationFromOutside(t *testing.T) {
	l := newLabels(Spec{Name: "a", Key: "b"})
	synctest.Test(t, func(t *testing.T) {
		a, s := new(attached), newSpans(nil)
		s.tracer = a
		calls := func(want int) {
			t.Helper()
			a.asked = 0
			for range 10 {
				s.start(t.Context(), l)
			}
			if a.asked != want {
				t.Errorf("%d of 10 calls asked for a span, want %d", a.asked, want)
			}
		}
		calls(1)
		a.records = true
		calls(0)
		time.Sleep(askEvery)
		synctest.Wait()
		calls(10)
		a.records = false
		calls(1)
	})
}

// TestSpansAlwaysStartWithAProvider holds that no span is lost of a provider that is set at the guard, or later in the
// program. OpenTelemetry's global provider can be set once in a process, so this needs one of its own.
func TestSpansAlwaysStartWithAProvider(t *testing.T) {
	if os.Getenv("LATCHKEY_GLOBAL_PROVIDER") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "LATCHKEY_GLOBAL_PROVIDER=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	exporter := tracetest.NewInMemoryExporter()
	l := newLabels(Spec{Name: "a", Key: "b"})
	early, given := newSpans(nil), newSpans(otel.GetTracerProvider())
	early.start(context.Background(), l)
	given.start(context.Background(), l)
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	late := newSpans(nil)
	for i, s := range []spans{early, given, late} {
		for n := range 5 {
			ctx, span := s.start(t.Context(), l)
			span.End()
			if want := 5*i + n + 1; len(exporter.GetSpans()) != want || trace.SpanFromContext(ctx) != span {
				t.Fatalf("provider %d, call %d: %d spans, want %d", i, n, len(exporter.GetSpans()), want)
			}
		}
	}
}
