package promql

import (
	"bytes"
	"image/color"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	columns     = 2
	panelWidth  = 14 * vg.Centimeter
	panelHeight = 7 * vg.Centimeter
	// mostLines are named in a panel; more would hide each other.
	mostLines = 6
)

// colors of the lines, which people with a weakness for red and green tell apart (Okabe and Ito).
var colors = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{86, 180, 233, 255},
}

// drawBoard is a dashboard over the recording, as SVG.
func drawBoard(t *testing.T, data *prometheus, board dashboard, lasts time.Duration) []byte {
	t.Helper()

	rows := (len(board.Panels) + columns - 1) / columns
	canvas := vgsvg.New(columns*panelWidth, vg.Length(rows)*panelHeight)
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: vg.Millimeter, PadY: vg.Millimeter}
	whole := draw.New(canvas)

	for i, panel := range board.Panels {
		drawn := plot.New()
		drawn.Title.Text = panel.Title
		drawn.X.Label.Text = "minutes"
		drawn.Y.Label.Text = panel.FieldConfig.Defaults.Unit
		drawn.Y.Min, drawn.Legend.Top, drawn.Legend.Left = 0, true, true

		lines := 0

		for _, target := range panel.Targets {
			for _, series := range data.over(target.Expr, lasts) {
				if panel.Type == "table" {
					lines += addRow(drawn, series, lasts, lines)

					continue
				}

				lines += addLine(t, drawn, series, legend(target.LegendFormat, series.Metric), lines)
			}
		}

		if lines == 0 {
			drawn.X.Label.Text = "no data while everything works"
		}

		drawn.X.Max = max(drawn.X.Max, lasts.Minutes())
		drawn.X.Min = 0
		// Room for the legend above the lines.
		if drawn.Y.Max *= 1.7; !(drawn.Y.Max > 0) || math.IsInf(drawn.Y.Max, 0) {
			drawn.Y.Max = 1
		}

		drawn.Draw(tiles.At(whole, i%columns, i/columns))
	}

	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

// addLine draws one series, and returns how many it drew.
func addLine(t *testing.T, on *plot.Plot, series promql.Series, name string, before int) int {
	t.Helper()

	var points plotter.XYs

	for _, point := range series.Floats {
		if !math.IsNaN(point.F) && !math.IsInf(point.F, 0) {
			points = append(points, plotter.XY{X: float64(point.T) / 60_000, Y: point.F})
		}
	}

	if len(points) == 0 {
		return 0
	}

	line, err := plotter.NewLine(points)
	if err != nil {
		t.Fatal(err)
	}

	line.Color, line.Width = colors[before%len(colors)], vg.Points(1.5)
	on.Add(line)

	if before < mostLines {
		on.Legend.Add(name, line)
	}

	return 1
}

// addRow names a series that a table shows at the end, and returns how many it named.
func addRow(on *plot.Plot, series promql.Series, lasts time.Duration, before int) int {
	if last := series.Floats[len(series.Floats)-1]; last.T != lasts.Milliseconds() {
		return 0
	}

	on.HideAxes()

	if before < mostLines {
		of := series.Metric
		on.Legend.Add(of.Get("kind") + " " + of.Get("namespace") + "/" + of.Get("name") + ": " + of.Get("reason"))
	}

	return 1
}

// legend fills in Grafana's format; without one it is the series.
func legend(format string, of labels.Labels) string {
	if format == "" {
		return of.String()
	}

	of.Range(func(label labels.Label) {
		format = strings.NewReplacer("{{"+label.Name+"}}", label.Value, "{{ "+label.Name+" }}", label.Value).Replace(format)
	})

	return format
}
