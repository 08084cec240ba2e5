//! Layout of a picture: positions of boxes, arrows and labels, in pixels.

use super::picture::{Arrow, EventColumn};

/// Width of a character in a box, and in a label.
const BOX_CHARACTER_WIDTH: f64 = 7.3;
const LABEL_CHARACTER_WIDTH: f64 = 6.7;
pub const LABEL_LINE_HEIGHT: f64 = 13.0;
pub const BOX_HEIGHT: f64 = 42.0;
const ROW_HEIGHT: f64 = 104.0;
const HEADER_HEIGHT: f64 = 34.0;
const MARGIN: f64 = 20.0;
/// Space between two columns in addition to the widest label.
const COLUMN_GAP: f64 = 110.0;
/// Distance between parallel arrows.
const ARROW_DISTANCE: f64 = 64.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Rectangle {
    /// Returns the area that two rectangles share.
    fn overlap_area(self, other: Rectangle) -> f64 {
        let width = (self.x + self.width).min(other.x + other.width) - self.x.max(other.x);
        let height = (self.y + self.height).min(other.y + other.height) - self.y.max(other.y);
        width.max(0.0) * height.max(0.0)
    }

    fn contains(self, x: f64, y: f64) -> bool {
        (self.x..self.x + self.width).contains(&x) && (self.y..self.y + self.height).contains(&y)
    }
}

pub type Point = (f64, f64);

/// A sequence of cubic curves, each with its start, two control points and its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve(pub Vec<[Point; 4]>);

impl Curve {
    /// Returns the point at `t`, 0 at the start and 1 at the end; `None` for a curve without parts.
    pub fn point_at(&self, t: f64) -> Option<Point> {
        let scaled = t * self.0.len() as f64;
        let index = (scaled as usize).min(self.0.len().checked_sub(1)?);
        let part = self.0.get(index)?;
        let t = scaled - index as f64;
        let weights = [(1.0 - t).powi(3), 3.0 * (1.0 - t).powi(2) * t, 3.0 * (1.0 - t) * t * t, t.powi(3)];
        let sum = |coordinate: fn(&Point) -> f64| {
            weights.iter().zip(part).map(|(weight, point)| weight * coordinate(point)).sum()
        };
        Some((sum(|point| point.0), sum(|point| point.1)))
    }
}

/// A laid out picture.
#[derive(Clone, Debug)]
pub struct PictureLayout {
    /// The box of each event that is drawn.
    pub boxes: Vec<(usize, Rectangle)>,
    /// The middle of each column's title.
    pub headers: Vec<(f64, f64)>,
    /// The curve of each arrow, and the rectangle of its label.
    pub arrows: Vec<(Curve, Rectangle)>,
    pub width: f64,
    pub height: f64,
}

/// Returns the width of a text in a box.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * BOX_CHARACTER_WIDTH
}

fn label_size(arrow: &Arrow) -> (f64, f64) {
    let longest = arrow.label.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    (longest as f64 * LABEL_CHARACTER_WIDTH + 8.0, arrow.label.len() as f64 * LABEL_LINE_HEIGHT + 4.0)
}

/// The side of a box on which an arrow begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoxSide {
    Left,
    Right,
}

/// An end of an arrow.
struct Port {
    arrow: usize,
    event: usize,
    side: BoxSide,
    is_start: bool,
    /// Sort key of the ports of one side: the higher the other end, the higher the port.
    key: (usize, usize),
}

/// Lays a picture out. `caption` gives the lines in an event's box.
pub fn lay_out(
    columns: &[EventColumn],
    arrows: &[Arrow],
    caption: &dyn Fn(usize) -> Vec<String>,
) -> PictureLayout {
    let position_of = |event: usize| {
        columns.iter().enumerate().find_map(|(column, found)| {
            found.events.iter().position(|at| *at == event).map(|row| (column, row))
        })
    };
    let positions: Vec<Option<(GridPosition, GridPosition)>> =
        arrows.iter().map(|arrow| position_of(arrow.from).zip(position_of(arrow.to))).collect();
    let last = columns.len().saturating_sub(1);
    // An arrow within a column bulges out of its first column to the left, and out of the others to the right.
    let side_within_column =
        |column: usize| if column == 0 && last > 0 { BoxSide::Left } else { BoxSide::Right };

    let mut left = MARGIN;
    let mut right = MARGIN;
    let mut gaps = vec![COLUMN_GAP; last];
    for (arrow, found) in arrows.iter().zip(&positions) {
        let Some(((from, _), (to, _))) = *found else { continue };
        let needed = label_size(arrow).0 + COLUMN_GAP;
        if from == to {
            match side_within_column(from) {
                BoxSide::Left => left = f64::max(left, needed),
                BoxSide::Right if from == last => right = f64::max(right, needed),
                BoxSide::Right => gaps[from] = f64::max(gaps[from], needed),
            }
        } else {
            for gap in &mut gaps[from.min(to)..from.max(to)] {
                *gap = f64::max(*gap, needed);
            }
        }
    }

    let mut boxes = Vec::new();
    let mut headers = Vec::new();
    let mut extents = Vec::new();
    let mut x = left;
    for (index, column) in columns.iter().enumerate() {
        let lines = column.events.iter().flat_map(|event| caption(*event));
        let widest = lines.map(|line| text_width(&line)).fold(text_width(&column.title), f64::max);
        let width = widest + 20.0;
        headers.push((x + width / 2.0, HEADER_HEIGHT - 14.0));
        extents.push((x, x + width));
        for (row, event) in column.events.iter().enumerate() {
            let y = HEADER_HEIGHT + row as f64 * ROW_HEIGHT;
            boxes.push((*event, Rectangle { x, y, width, height: BOX_HEIGHT }));
        }
        x += width + gaps.get(index).copied().unwrap_or(right);
    }
    let rows = columns.iter().map(|column| column.events.len()).max().unwrap_or(0);
    let has_lowest_lane = positions.iter().flatten().any(|(from, to)| lane_row(*from, *to) == Some(rows - 1));
    let foot = if has_lowest_lane { ROW_HEIGHT - BOX_HEIGHT } else { MARGIN };
    let height =
        if rows == 0 { 0.0 } else { HEADER_HEIGHT + (rows - 1) as f64 * ROW_HEIGHT + BOX_HEIGHT + foot };
    let width = if rows == 0 { 0.0 } else { x };

    let arrow_curves = route_arrows(arrows, &positions, &boxes, &extents, &side_within_column);
    let labels = place_labels(arrows, &arrow_curves, &boxes, width, height);
    // Many arrows between few events push labels out: the picture grows with them.
    let ends = |end: &dyn Fn(&Rectangle) -> f64| labels.iter().map(end).fold(0.0, f64::max);
    let width = f64::max(width, ends(&|label| label.x + label.width));
    let height = f64::max(height, ends(&|label| label.y + label.height));
    PictureLayout { boxes, headers, arrows: arrow_curves.into_iter().zip(labels).collect(), width, height }
}

/// A column and a row.
type GridPosition = (usize, usize);

/// Returns the row below which an arrow passes the intermediate columns; `None` for adjacent columns.
fn lane_row(from: GridPosition, to: GridPosition) -> Option<usize> {
    (from.0.abs_diff(to.0) > 1).then_some(from.1.min(to.1))
}

fn route_arrows(
    arrows: &[Arrow],
    positions: &[Option<(GridPosition, GridPosition)>],
    boxes: &[(usize, Rectangle)],
    extents: &[(f64, f64)],
    side_within_column: &dyn Fn(usize) -> BoxSide,
) -> Vec<Curve> {
    let mut ports: Vec<Port> = Vec::new();
    for (index, (arrow, found)) in arrows.iter().zip(positions).enumerate() {
        let Some(((from, from_row), (to, to_row))) = *found else { continue };
        let (first, second) = match from.cmp(&to) {
            std::cmp::Ordering::Less => (BoxSide::Right, BoxSide::Left),
            std::cmp::Ordering::Greater => (BoxSide::Left, BoxSide::Right),
            std::cmp::Ordering::Equal => (side_within_column(from), side_within_column(from)),
        };
        ports.push(Port {
            arrow: index,
            event: arrow.from,
            side: first,
            is_start: true,
            key: (to_row, index),
        });
        ports.push(Port {
            arrow: index,
            event: arrow.to,
            side: second,
            is_start: false,
            key: (from_row, index),
        });
    }
    let point = |port: &Port| {
        let mut ports_on_side: Vec<(usize, usize, bool)> = ports
            .iter()
            .filter(|other| other.event == port.event && other.side == port.side)
            .map(|other| (other.key.0, other.key.1, other.is_start))
            .collect();
        ports_on_side.sort_unstable();
        let position =
            ports_on_side.iter().position(|key| *key == (port.key.0, port.key.1, port.is_start)).unwrap_or(0);
        let found = boxes.iter().find(|(event, _)| *event == port.event).map(|(_, rectangle)| *rectangle);
        let rectangle = found.unwrap_or(Rectangle { x: 0.0, y: 0.0, width: 0.0, height: 0.0 });
        let x = match port.side {
            BoxSide::Left => rectangle.x,
            BoxSide::Right => rectangle.x + rectangle.width,
        };
        (x, rectangle.y + rectangle.height * (position + 1) as f64 / (ports_on_side.len() + 1) as f64)
    };
    let mut drawn = Vec::new();
    for (index, arrow) in arrows.iter().enumerate() {
        let mut ends = ports.iter().filter(|port| port.arrow == index);
        let (Some(first), Some(second)) = (ends.next(), ends.next()) else {
            drawn.push(Curve(Vec::new()));
            continue;
        };
        let (start, end) = (point(first), point(second));
        if let Some((from, to)) = positions[index]
            && let Some(row) = lane_row(from, to)
        {
            let lane = |place: &Option<(GridPosition, GridPosition)>| {
                place.and_then(|(from, to)| lane_row(from, to)) == Some(row)
            };
            let count = positions.iter().filter(|place| lane(place)).count();
            let position = positions[..index].iter().filter(|place| lane(place)).count();
            let share = (position + 1) as f64 / (count + 1) as f64;
            let y = HEADER_HEIGHT + row as f64 * ROW_HEIGHT + BOX_HEIGHT + (ROW_HEIGHT - BOX_HEIGHT) * share;
            let (enter, leave) = if from.0 < to.0 {
                (extents[from.0 + 1].0, extents[to.0 - 1].1)
            } else {
                (extents[from.0 - 1].1, extents[to.0 + 1].0)
            };
            let bent = |a: Point, b: Point| {
                let reach = (b.0 - a.0) * 0.5;
                [a, (a.0 + reach, a.1), (b.0 - reach, b.1), b]
            };
            let (first, second) = ((enter, y), (leave, y));
            drawn.push(Curve(vec![bent(start, first), bent(first, second), bent(second, end)]));
            continue;
        }
        let pair = |other: &Arrow| {
            (other.from.min(other.to), other.from.max(other.to))
                == (arrow.from.min(arrow.to), arrow.from.max(arrow.to))
        };
        let count = arrows.iter().filter(|other| pair(other)).count();
        let position = arrows[..index].iter().filter(|other| pair(other)).count();
        let bend = (position as f64 - (count as f64 - 1.0) / 2.0) * ARROW_DISTANCE;
        let outward = |side: BoxSide, reach: f64| if side == BoxSide::Left { -reach } else { reach };
        let curve = if first.side == second.side {
            let reach = 46.0 + (start.1 - end.1).abs() / 12.0 + bend.abs() / 2.0;
            [
                start,
                (start.0 + outward(first.side, reach), start.1),
                (end.0 + outward(first.side, reach), end.1),
                end,
            ]
        } else {
            let reach = (start.0 - end.0).abs() * 0.4;
            [
                start,
                (start.0 + outward(first.side, reach), start.1 + bend),
                (end.0 + outward(second.side, reach), end.1 + bend),
                end,
            ]
        };
        drawn.push(Curve(vec![curve]));
    }
    drawn
}

/// Vertical distances of a label from its curve that are tried; others than 0 only avoid overlap.
const LABEL_SHIFTS: [f64; 7] = [0.0, -14.0, 14.0, -28.0, 28.0, -42.0, 42.0];

/// Places each label on its curve with the least overlap, or next to the curve if it covers something there.
fn place_labels(
    arrows: &[Arrow],
    curves: &[Curve],
    boxes: &[(usize, Rectangle)],
    width: f64,
    height: f64,
) -> Vec<Rectangle> {
    let mut placed: Vec<Rectangle> = Vec::new();
    let sample = |curve: &Curve| -> Vec<Point> {
        (0..=36).filter_map(|step| curve.point_at(f64::from(step) / 36.0)).collect()
    };
    let curve_points: Vec<Vec<Point>> = curves.iter().map(sample).collect();
    for (index, (arrow, curve)) in arrows.iter().zip(curves).enumerate() {
        let (label_width, label_height) = label_size(arrow);
        let mut best: Option<(f64, Rectangle)> = None;
        let candidates = (0..=32).flat_map(|step| LABEL_SHIFTS.map(|shift| (step, shift)));
        for (step, shift) in candidates {
            let t = 0.1 + 0.8 * f64::from(step) / 32.0;
            let Some((x, y)) = curve.point_at(t) else { break };
            let rectangle = Rectangle {
                x: x - label_width / 2.0,
                y: y - label_height / 2.0 + shift,
                width: label_width,
                height: label_height,
            };
            let covered_area: f64 = boxes
                .iter()
                .map(|(_, other)| *other)
                .chain(placed.iter().copied())
                .map(|other| rectangle.overlap_area(other))
                .sum();
            let outside = f64::max(0.0, -rectangle.x)
                + f64::max(0.0, rectangle.x + label_width - width)
                + f64::max(0.0, -rectangle.y)
                + f64::max(0.0, rectangle.y + label_height - height);
            let distance = 100.0 * (t - 0.5).abs() + 8.0 * shift.abs();
            let lower_bound = 100.0 * covered_area + 500.0 * outside + distance;
            if best.is_some_and(|(known, _)| lower_bound >= known) {
                continue;
            }
            let others = curve_points.iter().enumerate().filter(|(other, _)| *other != index);
            let crossed =
                others.flat_map(|(_, points)| points).filter(|(x, y)| rectangle.contains(*x, *y)).count();
            let cost = lower_bound + 40.0 * crossed as f64;
            if best.is_none_or(|(known, _)| cost < known) {
                best = Some((cost, rectangle));
            }
        }
        let empty = Rectangle { x: 0.0, y: 0.0, width: 0.0, height: 0.0 };
        placed.push(best.map_or(empty, |(_, rectangle)| rectangle));
    }
    placed
}
