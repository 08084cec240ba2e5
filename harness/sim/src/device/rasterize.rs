//! Rasterization of a draw: the vertices of a point list, or the fragments that such points cover, in quads.
//!
//! The specification allows vertices and fragments to be shaded more than once. All four pixels of a partly
//! covered quad are shaded; helper invocations shade the uncovered ones.

use plan::Drawing;

use crate::limits::SUBGROUP_SIZE;
use crate::machine::Machine;
use crate::program::{LANES, NONE, Program};
use crate::random::Random;
use crate::wave::{DispatchState, Wave};

/// Rates, of 256, at which invocations are launched again; one is drawn per draw.
const RESHADING_RATES: [u32; 4] = [0, 0, 16, 64];
/// Numbers of subgroups that share a cache; one is drawn per draw.
const SUBGROUPS_PER_CACHE: [u32; 4] = [1, 1, 2, 4];
/// The maximal width and height of a point in pixels.
pub(super) const MAX_POINT_SIZE: u32 = 1024;

/// The invocations of a draw, in launch order.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadedInvocations {
    /// The position of each invocation, as in a wave.
    pub places: Vec<[u32; 4]>,
    pub primitives: Vec<u32>,
    /// The number of invocations that share a cache, like those of a workgroup.
    pub cache_sharers: u32,
}

impl ShadedInvocations {
    /// Returns the vertices of a draw, or the fragments of the points that `positions` computes.
    pub fn new(
        positions: Option<&Program>,
        drawing: Drawing,
        parameters: &[u32],
        machine: &mut Machine,
        seed: u64,
    ) -> ShadedInvocations {
        let mut random = Random::new(seed);
        let mut all: Vec<(u32, [u32; 4])> = match positions {
            Some(positions) => shade_points(positions, drawing, parameters, machine),
            None => (0..drawing.points).map(|vertex| (vertex, [vertex, 0, 0, 0])).collect(),
        };
        let rate = RESHADING_RATES[random.below(RESHADING_RATES.len())];
        // Vulkan allows that vertices and fragments are shaded more than once.
        let reshaded: Vec<_> = all.iter().copied().filter(|_| random.chance(rate)).collect();
        let together = SUBGROUP_SIZE * SUBGROUPS_PER_CACHE[random.below(SUBGROUPS_PER_CACHE.len())];
        all.extend(reshaded);
        let (primitives, places) = all.into_iter().unzip();
        ShadedInvocations { places, primitives, cache_sharers: together }
    }
}

impl ShadedInvocations {
    /// Returns the fragments without helpers, each with its invocation number and pixel, in primitive order.
    pub fn fragments_in_order(&self, first: u32) -> Vec<(u32, [u32; 2])> {
        let mut all: Vec<(u32, u32, [u32; 2])> = (first..)
            .zip(self.places.iter().zip(&self.primitives))
            .filter(|(_, ([.., helper, _], _))| *helper == 0)
            .map(|(number, ([x, y, ..], primitive))| (*primitive, number, [*x, *y]))
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(_, number, pixel)| (number, pixel)).collect()
    }
}

/// Returns the fragments of points, and their helpers, quad by quad, with the number of the point.
fn shade_points(
    positions: &Program,
    drawing: Drawing,
    parameters: &[u32],
    machine: &mut Machine,
) -> Vec<(u32, [u32; 4])> {
    let parameters = parameters.to_vec();
    let dispatch =
        DispatchState { program: 0, parameters, bindings: Vec::new(), first_workgroup: 0, workgroups: 1 };
    let mut all = Vec::new();
    let vertices: Vec<u32> = (0..drawing.points).collect();
    for some in vertices.chunks(LANES) {
        let places = some.iter().map(|vertex| [*vertex, 0, 0, 0]).collect();
        let mut wave = Wave::new(0, positions, vec![[0; 5]; some.len()], places);
        wave.run_without_memory(&mut machine.wave_context(positions, &dispatch));
        for (lane, vertex) in some.iter().enumerate() {
            let [position, size, passed_word] = positions.outputs.map(|output| output.unwrap_or(NONE));
            let read_float = |register: u32| f32::from_bits(wave.register_value(register, lane));
            // The components of the position occupy adjacent registers.
            let at = [0, 1, 2, 3].map(|component| read_float(position.saturating_add(component)));
            let handed = wave.register_value(passed_word, lane);
            let fragments = rasterize_point(at, read_float(size), drawing.extent);
            all.extend(fragments.into_iter().map(|[x, y, helper, _]| (*vertex, [x, y, helper, handed])));
        }
    }
    all
}

/// Returns the fragments of a point in quads: pixels with their centre inside its square, and helpers in the
/// same quads.
fn rasterize_point([x, y, z, w]: [f32; 4], size: f32, (width, height): (u32, u32)) -> Vec<[u32; 4]> {
    // The view volume: -w ≤ x, y ≤ w and 0 ≤ z ≤ w. Points outside are clipped as a whole.
    let outside = |value: f32| value.is_nan() || value.abs() > w;
    if w <= 0.0 || outside(x) || outside(y) || outside(z) || z < 0.0 {
        return Vec::new();
    }
    let half = size.clamp(1.0, MAX_POINT_SIZE as f32) / 2.0;
    let covered = |at: f32, most: u32| {
        // The viewport transformation, from -1..1 to pixels. A pixel is covered if its centre, at
        // 0.5, is inside.
        let middle = (at / w + 1.0) * Drawing::VIEWPORT_SIZE as f32 / 2.0;
        let [first, end] = [middle - half, middle + half].map(|edge| (edge - 0.5).ceil().max(0.0) as u32);
        first.min(most)..end.min(most)
    };
    let (columns, rows) = (covered(x, width), covered(y, height));
    if columns.is_empty() || rows.is_empty() {
        return Vec::new();
    }
    // Quads start at even coordinates.
    let quads = |pixels: &std::ops::Range<u32>| pixels.start / 2..pixels.end.div_ceil(2);
    let mut all = Vec::new();
    for (row, column) in quads(&rows).flat_map(|row| quads(&columns).map(move |column| (row, column))) {
        for (below, right) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (x, y) = (column * 2 + right, row * 2 + below);
            let helper = !(columns.contains(&x) && rows.contains(&y));
            all.push([x, y, helper.into(), 0]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the covered pixels and the helper pixels of a point at `(x, y)`.
    fn count_pixels(x: f32, y: f32, size: f32, extent: (u32, u32)) -> (usize, usize) {
        let scale = 2.0 / Drawing::VIEWPORT_SIZE as f32;
        let all = rasterize_point([x * scale - 1.0, y * scale - 1.0, 0.0, 1.0], size, extent);
        assert!(all.len().is_multiple_of(4), "whole quads");
        let helpers = all.iter().filter(|place| place[2] == 1).count();
        (all.len() - helpers, helpers)
    }

    #[test]
    fn points_cover_pixels_whose_centre_they_contain() {
        assert_eq!(count_pixels(2.0, 2.0, 4.0, (64, 64)), (16, 0));
        // A point off the quad grid has a ring of helpers.
        assert_eq!(count_pixels(3.0, 3.0, 4.0, (64, 64)), (16, 20));
        assert_eq!(count_pixels(0.5, 0.5, 1.0, (64, 64)), (1, 3));
        assert_eq!(count_pixels(2.0, 2.0, 4.0, (3, 2)), (6, 2));
        assert_eq!(count_pixels(70.0, 2.0, 4.0, (64, 64)), (0, 0));
    }

    #[test]
    fn points_outside_the_viewport_are_not_drawn() {
        for at in
            [[1.5, 0.0, 0.0, 1.0], [0.0, 0.0, -0.5, 1.0], [0.0, 0.0, 0.0, 0.0], [f32::NAN, 0.0, 0.0, 1.0]]
        {
            assert!(rasterize_point(at, 4.0, (4096, 4096)).is_empty(), "{at:?}");
        }
    }
}
