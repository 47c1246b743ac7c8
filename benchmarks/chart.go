package main

import (
	"errors"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// chart shows figures of all peers: a row for each peer, a dot for each figure at its median, and a line from its lowest to
// its highest value.
type chart struct {
	file, title, axis string
	columns           []column
	log               bool
}

var charts = []chart{
	{"latency.png", "One caller, its own key: time of a pair", "µs (logarithmic)", []column{{"median", "pair_p50_us"}, {"99th percentile", "pair_p99_us"}, {"median, each answer 0.5 ms later", "link_pair_p50_us"}}, true},
	{"throughput.png", "Pairs a second of many callers, each with its own key", "pairs a second", []column{{"8 callers", "own_keys_8_rate"}, {"64 callers", "own_keys_64_rate"}, {"512 callers", "own_keys_512_rate"}}, false},
	{"commands.png", "Commands that clients send for an acquisition", "commands", []column{{"one caller", "pair_commands"}, {"64 callers, one key", "one_key_commands"}, {"4 processes × 16, one key", "processes_commands"}, {"strict turns", "turns_commands"}}, false},
	{"handover.png", "From a release to the acquisition of another caller", "µs (logarithmic)", []column{{"64 callers, one key", "one_key_gap_us"}, {"over a link of 0.5 ms", "link_key_gap_us"}, {"4 processes × 16", "processes_gap_us"}, {"strict turns of two processes", "turns_gap_us"}}, true},
	{"contention.png", "Acquisitions a second of 64 callers on one key, 2 ms away after each", "acquisitions a second", []column{{"one process", "one_key_per_s"}, {"over a link of 0.5 ms", "link_key_per_s"}, {"4 processes × 16", "processes_per_s"}}, false},
}

// draw makes all charts for which there are figures, as PNG files in dir.
func (r report) draw(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, c := range charts {
		errs = append(errs, r.dots(c, dir))
	}
	return errors.Join(errs...)
}

// dots draws one chart.
func (r report) dots(c chart, dir string) error {
	rows := r.rows(c)
	if len(rows) == 0 {
		return nil
	}
	p := newPlot(c.title)
	p.X.Label.Text = c.axis
	p.X.Tick.Marker = plainTicks{}
	if c.log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.NominalY(rows...)
	p.Y.Label.Text = " " // keeps the longest name off the edge
	for i, col := range c.columns {
		points := r.points(rows, col.id, offset(i, len(c.columns)))
		if points.Len() == 0 {
			continue
		}
		if err := addDots(p, col.head, points, i); err != nil {
			return err
		}
	}
	p.Y.Min, p.Y.Max = -0.6, float64(len(rows))+0.5*float64(len(c.columns))-0.4 // the legend has the top to itself
	p.X.Min, p.X.Max = p.X.Min/1.2, p.X.Max*1.2
	if !c.log {
		p.X.Min, p.X.Max = 0, p.X.Max/1.15
	}
	return p.Save(9*vg.Inch, vg.Length(len(rows))*0.4*vg.Inch+vg.Length(len(c.columns))*0.2*vg.Inch+1.2*vg.Inch, filepath.Join(dir, c.file))
}

// offset keeps the dots of one row apart. The first is the highest.
func offset(i, n int) float64 { return 0.25 - 0.5*float64(i)/float64(max(1, n-1)) }

// rows are the peers with a dot in the chart, the first at the top.
func (r report) rows(c chart) []string {
	var rows []string
	for _, peer := range r.peers() {
		if slices.ContainsFunc(c.columns, func(col column) bool { f, ok := r.find(col.id, peer); return ok && f.Value != nil }) {
			rows = append(rows, peer)
		}
	}
	slices.Reverse(rows)
	return rows
}

// spreadPoints are points with a line to either side.
type spreadPoints struct {
	plotter.XYs
	plotter.XErrors
}

func (r report) points(rows []string, id string, offset float64) spreadPoints {
	var s spreadPoints
	for y, peer := range rows {
		f, ok := r.find(id, peer)
		if !ok || f.Value == nil {
			continue
		}
		s.XYs = append(s.XYs, plotter.XY{X: *f.Value, Y: float64(y) + offset})
		s.XErrors = append(s.XErrors, struct{ Low, High float64 }{*f.Value - *f.Min, *f.Max - *f.Value})
	}
	return s
}

func addDots(p *plot.Plot, name string, points spreadPoints, i int) error {
	dots, err := plotter.NewScatter(points.XYs)
	if err != nil {
		return err
	}
	lines, err := plotter.NewXErrorBars(points)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: plotutil.Color(i), Radius: vg.Points(3.5), Shape: draw.CircleGlyph{}}
	lines.Color, lines.Width, lines.CapWidth = plotutil.Color(i), vg.Points(1.5), 0
	p.Add(lines, dots)
	p.Legend.Add(name, dots)
	return nil
}

// plainTicks are the usual ones, with numbers as in the tables.
type plainTicks struct{ plot.DefaultTicks }

// Ticks implements plot.Ticker.
func (t plainTicks) Ticks(low, high float64) []plot.Tick {
	ticks := t.DefaultTicks.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = number(ticks[i].Value)
		}
	}
	return ticks
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.Title.Padding = title, vg.Points(8)
	p.Title.TextStyle.Font.Size = font.Length(13)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(2)
	return p
}
