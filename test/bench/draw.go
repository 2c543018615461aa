package main

import (
	"bytes"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth  = 20 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
	plotMargin = 3 * vg.Millimeter
	barWidth   = 7 * vg.Millimeter
)

// colors that people with a weakness for red and green tell apart (Okabe and Ito).
var colors = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{128, 128, 128, 255},
}

// grey is the last of the colors.
const grey = 4

// draw makes a pair of bars for each verb, with their values, and a line where both APIs are equal.
func (b bars) draw() (*plot.Plot, error) {
	p := newPlot("Our API through the aggregator, against a CRD", "verb", "ratio, ours/CRD")

	// First, and so beneath the bars and their values.
	if err := addEqual(p, len(b.verbs)); err != nil {
		return nil, err
	}

	for side, shown := range []struct {
		name   string
		values []float64
	}{
		{"requests per second (more is better)", b.rates},
		{"processor time of all servers per request (less is better)", b.costs},
	} {
		if err := addBars(p, shown.name, shown.values, side); err != nil {
			return nil, err
		}
	}

	names := make([]string, len(b.verbs))
	for i, verb := range b.verbs {
		names[i] = strings.Replace(verb, " ", "\n", 1) // two lines: else long names would touch
	}

	p.NominalX(names...)

	return p, nil
}

// addBars adds the bars of one side, 0 or 1, of the middle.
func addBars(p *plot.Plot, name string, values plotter.Values, side int) error {
	chart, err := plotter.NewBarChart(values, barWidth)
	if err != nil {
		return err
	}

	chart.Color, chart.LineStyle.Width = colors[side], 0
	chart.Offset = (vg.Length(side) - 0.5) * barWidth

	tops := plotter.XYLabels{}
	for i, value := range values {
		tops.XYs = append(tops.XYs, plotter.XY{X: float64(i), Y: value})
		tops.Labels = append(tops.Labels, strconv.FormatFloat(value, 'f', 2, 64))
	}

	labels, err := plotter.NewLabels(tops)
	if err != nil {
		return err
	}

	labels.Offset = vg.Point{X: chart.Offset, Y: vg.Points(2)}

	for i := range labels.TextStyle {
		labels.TextStyle[i].XAlign = draw.XCenter
		labels.TextStyle[i].Font.Size = 8
		sans(&labels.TextStyle[i])
	}

	p.Add(chart, labels)
	p.Legend.Add(name, chart)

	return nil
}

// addEqual adds the line at the ratio 1.
func addEqual(p *plot.Plot, verbs int) error {
	line, err := plotter.NewLine(plotter.XYs{{X: -0.5, Y: 1}, {X: float64(verbs) - 0.5, Y: 1}})
	if err != nil {
		return err
	}

	line.Color, line.Width = colors[grey], vg.Points(1.25)
	line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}

	p.Add(line)
	p.Legend.Add("ratio 1: as the CRD", line)

	return nil
}

// draw makes the curves, with marks where something was measured.
func (c curves) draw() (*plot.Plot, error) {
	p := newPlot(c.title, c.x, c.y)

	for _, shown := range c.all {
		if err := addCurve(p, shown); err != nil {
			return nil, err
		}
	}

	p.X.Tick.Marker = c.ticks()

	return p, nil
}

// ticks are the sizes at which something was measured.
func (c curves) ticks() plot.ConstantTicks {
	var ticks plot.ConstantTicks

	seen := map[float64]bool{}

	for _, shown := range c.all {
		for _, at := range shown.points {
			if !seen[at.clusters] {
				ticks = append(ticks, plot.Tick{Value: at.clusters, Label: strconv.FormatFloat(at.clusters, 'f', 0, 64)})
			}

			seen[at.clusters] = true
		}
	}

	return ticks
}

func addCurve(p *plot.Plot, c curve) error {
	points := make(plotter.XYs, len(c.points))
	for i, at := range c.points {
		points[i] = plotter.XY{X: at.clusters, Y: at.value}
	}

	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}

	line.Color, line.Width = colors[c.color], vg.Points(1.5)
	marks.Color, marks.Shape, marks.Radius = colors[c.color], draw.CircleGlyph{}, vg.Points(2.5)

	if c.dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}

	p.Add(line, marks)
	p.Legend.Add(c.name, line, marks)

	return nil
}

// newPlot is an empty plot whose vertical axis begins at zero, or below.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.X.Min, p.Y.Min = 0, 0
	p.Y.Tick.Marker = plot.TickerFunc(roundTicks)
	p.Legend.Left, p.Legend.Padding = true, vg.Points(3)
	p.Legend.TextStyle.Font.Size = 10

	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	p.Add(grid)

	sans(&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle)

	return p
}

// roundTicks are five to eleven marks, 1, 2 or 5 times a power of ten apart. The library's own are at numbers such as 0.09.
func roundTicks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(high-low)))

	if steps := (high - low) / step; steps < 2 {
		step /= 5
	} else if steps < 5 {
		step /= 2
	}

	decimals := max(0, -int(math.Floor(math.Log10(step))))

	var ticks []plot.Tick

	for i := int(math.Ceil(low / step)); i <= int(math.Floor(high/step)); i++ {
		value := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', decimals, 64)})
	}

	return ticks
}

// sans sets texts without serifs.
func sans(styles ...*text.Style) {
	for _, style := range styles {
		style.Font.Variant = "Sans"
	}
}

// encodeSVG is the plot as a file.
func encodeSVG(p *plot.Plot) ([]byte, error) {
	canvas := vgsvg.New(plotWidth, plotHeight)
	paint(p, canvas)

	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}

	// The file does not hold the font: name others of the same widths, and last what every reader has.
	const set, wanted = "font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"

	return bytes.ReplaceAll(out.Bytes(), []byte(set), []byte(wanted)), nil
}

// paint draws on white, with the legend below the plot, where it hides nothing.
func paint(p *plot.Plot, canvas vg.CanvasSizer) {
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())

	inner := draw.Crop(whole, plotMargin, -plotMargin, plotMargin, -plotMargin)
	legend := p.Legend
	p.Legend = plot.NewLegend()
	p.Y.Max *= 1.05 // room for what is highest

	legend.Draw(inner)
	p.Draw(draw.Crop(inner, 0, 0, legend.Rectangle(inner).Size().Y+plotMargin, 0))
}
