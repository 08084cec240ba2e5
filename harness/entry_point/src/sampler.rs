//! Samplers: which texels they read, with which weights ("Texel Filtering" in the Vulkan specification).

/// The state of a sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// True for linear filtering, false for nearest.
    pub is_linear: bool,
    /// The addressing mode beyond the edge.
    pub address_mode: AddressMode,
}

/// The texels that a sampler reads beyond the edge of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressMode {
    /// Repeats the image.
    Repeat,
    /// Repeats the image, mirrored.
    Mirror,
    /// Repeats the texels at the edge.
    Clamp,
}

impl Sampler {
    /// Parses `nearest` or `linear`, optionally followed by `,repeat`, `,mirror` or `,clamp`. The default is
    /// `repeat`.
    pub fn parse(text: &str) -> Option<Sampler> {
        let (filter, beyond) = text.split_once(',').unwrap_or((text, "repeat"));
        let linear = match filter {
            "nearest" => false,
            "linear" => true,
            _ => return None,
        };
        let beyond = match beyond {
            "repeat" => AddressMode::Repeat,
            "mirror" => AddressMode::Mirror,
            "clamp" => AddressMode::Clamp,
            _ => return None,
        };
        Some(Sampler { is_linear: linear, address_mode: beyond })
    }

    /// Formats the keys of a case file that select this sampler.
    pub(crate) fn to_case_keys(self) -> String {
        let filter = if self.is_linear { "linear" } else { "nearest" };
        let edge = match self.address_mode {
            AddressMode::Repeat => "repeat",
            AddressMode::Mirror => "mirror",
            AddressMode::Clamp => "clamp",
        };
        format!("filter = {filter:?}\nedge = {edge:?}")
    }

    /// Returns the texels that a normalized coordinate reads along an axis, with their weights.
    pub fn texel_weights(self, coordinate: f64, offset: i64, size: u32) -> [(u32, f64); 2] {
        let at = coordinate * f64::from(size);
        if !self.is_linear {
            let nearest = self.wrap_texel((at.floor() as i64).saturating_add(offset), size);
            return [(nearest, 1.0), (nearest, 0.0)];
        }
        let first = (at - 0.5).floor();
        let weight = at - 0.5 - first;
        let first = (first as i64).saturating_add(offset);
        [
            (self.wrap_texel(first, size), 1.0 - weight),
            (self.wrap_texel(first.saturating_add(1), size), weight),
        ]
    }

    fn wrap_texel(self, texel: i64, size: u32) -> u32 {
        let size = i64::from(size.max(1));
        (match self.address_mode {
            AddressMode::Repeat => texel.rem_euclid(size),
            AddressMode::Clamp => texel.clamp(0, size - 1),
            AddressMode::Mirror => {
                let doubled_texel = texel.rem_euclid(2 * size);
                if doubled_texel < size { doubled_texel } else { 2 * size - 1 - doubled_texel }
            }
        }) as u32
    }
}
