//! Samplers: which texels they take of an image, and with which weights.

/// How a sampler looks at an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Whether it weighs the texels around a place, instead of taking the nearest.
    pub linear: bool,
    /// What is beyond the edge.
    pub beyond: Beyond,
}

/// What a sampler takes beyond the edge of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The image again.
    Repeat,
    /// The image, from back to front.
    Mirror,
    /// The texels at the edge.
    Clamp,
}

impl Sampler {
    /// Reads `nearest` or `linear`, with `,repeat`, `,mirror` or `,clamp` behind it; it repeats where nothing is said.
    pub fn parse(text: &str) -> Option<Sampler> {
        let (filter, beyond) = text.split_once(',').unwrap_or((text, "repeat"));
        let linear = match filter {
            "nearest" => false,
            "linear" => true,
            _ => return None,
        };
        let beyond = match beyond {
            "repeat" => Beyond::Repeat,
            "mirror" => Beyond::Mirror,
            "clamp" => Beyond::Clamp,
            _ => return None,
        };
        Some(Sampler { linear, beyond })
    }

    /// The texels that a coordinate from 0 to 1 takes of an axis of that many, with their weights ("Texel Filtering").
    pub(super) fn taken(self, coordinate: f64, offset: i64, size: u32) -> [(u32, f64); 2] {
        let at = coordinate * f64::from(size);
        if !self.linear {
            let nearest = self.within((at.floor() as i64).saturating_add(offset), size);
            return [(nearest, 1.0), (nearest, 0.0)];
        }
        let first = (at - 0.5).floor();
        let weight = at - 0.5 - first;
        let first = (first as i64).saturating_add(offset);
        [(self.within(first, size), 1.0 - weight), (self.within(first.saturating_add(1), size), weight)]
    }

    fn within(self, texel: i64, size: u32) -> u32 {
        let size = i64::from(size.max(1));
        (match self.beyond {
            Beyond::Repeat => texel.rem_euclid(size),
            Beyond::Clamp => texel.clamp(0, size - 1),
            Beyond::Mirror => {
                let twice = texel.rem_euclid(2 * size);
                if twice < size { twice } else { 2 * size - 1 - twice }
            }
        }) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{Beyond, Sampler};

    #[test]
    fn samplers_take_texels_with_weights() {
        let nearest = |beyond, at| Sampler { linear: false, beyond }.taken(at, 0, 4)[0].0;
        assert_eq!([0.0, 0.3, 0.99, 1.1, -0.1].map(|at| nearest(Beyond::Repeat, at)), [0, 1, 3, 0, 3]);
        assert_eq!([1.1, -0.1].map(|at| nearest(Beyond::Clamp, at)), [3, 0]);
        assert_eq!([1.1, -0.1, -0.3, 1.3].map(|at| nearest(Beyond::Mirror, at)), [3, 0, 1, 2]);
        let linear = Sampler { linear: true, beyond: Beyond::Clamp };
        for at in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300] {
            for beyond in [Beyond::Repeat, Beyond::Mirror, Beyond::Clamp] {
                let [(one, _), (other, _)] = Sampler { linear: true, beyond }.taken(at, 7, 4);
                assert!(one < 4 && other < 4);
            }
        }
        assert_eq!(linear.taken(0.375, 0, 4), [(1, 1.0), (2, 0.0)]);
        assert_eq!(linear.taken(0.5, 0, 4), [(1, 0.5), (2, 0.5)]);
        assert_eq!(linear.taken(0.0, 0, 4), [(0, 0.5), (0, 0.5)]);
    }
}
