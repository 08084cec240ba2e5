//! Texel formats: the values that an image stores, and the defaults of missing components.

use crate::{float_from_bits, float_to_bits, mask, sign_extend};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComponentEncoding {
    Float,
    /// Unsigned normalized, from 0 to 1.
    Unorm,
    /// Signed normalized, from -1 to 1.
    Snorm,
    Signed,
    Unsigned,
}

/// The kind of the numbers that a shader reads from texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TexelKind {
    Float,
    Signed,
    Unsigned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TexelFormat {
    encoding: ComponentEncoding,
    /// Bits of each component; 0 if missing.
    bits: [u32; 4],
}

impl TexelFormat {
    /// Returns the format of a SPIR-V image format number; `None` if unknown.
    pub fn from_spirv_format(number: u32) -> Option<TexelFormat> {
        use ComponentEncoding::{Float, Signed, Snorm, Unorm, Unsigned};
        // Components and bits, in the order of the numbers of the formats.
        const INTEGER: [(usize, u32); 9] =
            [(4, 32), (4, 16), (4, 8), (1, 32), (2, 32), (2, 16), (2, 8), (1, 16), (1, 8)];
        const NORMALIZED: [(usize, u32); 5] = [(4, 16), (2, 16), (2, 8), (1, 16), (1, 8)];
        let (encoding, (count, bits)) = match number {
            1..=3 => (Float, INTEGER[[0, 1, 3][number as usize - 1]]),
            4 => (Unorm, (4, 8)),
            5 => (Snorm, (4, 8)),
            6..=7 => (Float, INTEGER[number as usize - 2]),
            8 => return Some(TexelFormat { encoding: Float, bits: [11, 11, 10, 0] }),
            9 => (Float, (1, 16)),
            10 => (Unorm, NORMALIZED[0]),
            11 => return Some(TexelFormat { encoding: Unorm, bits: [10, 10, 10, 2] }),
            12..=15 => (Unorm, NORMALIZED[number as usize - 11]),
            16..=20 => (Snorm, NORMALIZED[number as usize - 16]),
            21..=29 => (Signed, INTEGER[number as usize - 21]),
            30..=33 => (Unsigned, INTEGER[number as usize - 30]),
            34 => return Some(TexelFormat { encoding: Unsigned, bits: [10, 10, 10, 2] }),
            35..=39 => (Unsigned, INTEGER[number as usize - 31]),
            40 => (Unsigned, (1, 64)),
            41 => (Signed, (1, 64)),
            _ => return None,
        };
        Some(TexelFormat {
            encoding,
            bits: std::array::from_fn(|index| if index < count { bits } else { 0 }),
        })
    }

    /// Returns the kind of the numbers in the shader.
    pub fn kind(self) -> TexelKind {
        match self.encoding {
            ComponentEncoding::Signed => TexelKind::Signed,
            ComponentEncoding::Unsigned => TexelKind::Unsigned,
            ComponentEncoding::Float | ComponentEncoding::Unorm | ComponentEncoding::Snorm => {
                TexelKind::Float
            }
        }
    }

    /// Returns the width of the numbers in the shader: 64 for 64-bit formats, else 32.
    pub fn number_bits(self) -> u32 {
        if self.bits[0] == 64 { 64 } else { 32 }
    }

    /// Rounds a component to the format; returns false if devices may round differently.
    ///
    /// The value is rounded to the nearest ("Texel Output Format Conversion").
    pub fn quantize(self, component: usize, value: u64) -> (u64, bool) {
        let bits = self.bits.get(component).copied().unwrap_or(0);
        let float = || float_from_bits(value, 32);
        // Quantizes a number from 0 to 1; NaN becomes 0.
        let quantize_normalized = |min_value: f64, steps: u64| {
            let steps = steps as f64;
            let clamped = if float().is_nan() { 0.0 } else { float().clamp(min_value, 1.0) };
            (float_to_bits((clamped * steps).round_ties_even() / steps, 32), true)
        };
        match (self.encoding, bits) {
            (_, 0) => (self.missing_component(component), true),
            (ComponentEncoding::Float, 16) => {
                (float_to_bits(float_from_bits(float_to_bits(float(), 16), 16), 32), true)
            }
            // Devices may round these in either direction.
            (ComponentEncoding::Float, 10 | 11) => (value, false),
            (ComponentEncoding::Unorm, _) => quantize_normalized(0.0, mask(bits)),
            (ComponentEncoding::Snorm, _) => quantize_normalized(-1.0, mask(bits - 1)),
            (ComponentEncoding::Signed, 1..32) => {
                let truncated = sign_extend(value, bits) as u64 & mask(32);
                (truncated, truncated == value)
            }
            (ComponentEncoding::Unsigned, 1..32) => {
                let truncated = value & mask(bits);
                (truncated, truncated == value)
            }
            _ => (value, true),
        }
    }

    /// Returns the bytes of a stored texel.
    pub fn texel_bytes(self) -> usize {
        self.bits.iter().sum::<u32>() as usize / 8
    }

    /// Packs a texel, the first component lowest; `None` for formats that devices round differently.
    pub fn pack(self, components: [u64; 4]) -> Option<u128> {
        let encode_component = |index: usize| {
            let (value, bits) = (components[index], self.bits[index]);
            let float = float_from_bits(value, 32);
            match (self.encoding, bits) {
                (_, 0) => Some(0),
                (ComponentEncoding::Float, 32)
                | (ComponentEncoding::Signed | ComponentEncoding::Unsigned, _) => Some(value & mask(bits)),
                (ComponentEncoding::Float, 16) => Some(float_to_bits(float, 16)),
                (ComponentEncoding::Float, _) => None,
                (ComponentEncoding::Unorm, _) => Some((float * mask(bits) as f64).round() as u64),
                (ComponentEncoding::Snorm, _) => {
                    Some((float * mask(bits - 1) as f64).round() as i64 as u64 & mask(bits))
                }
            }
        };
        let (mut texel, mut bit_offset) = (0, 0);
        for index in 0..4 {
            texel |= u128::from(encode_component(index)?) << bit_offset;
            bit_offset += self.bits[index];
        }
        Some(texel)
    }

    /// Unpacks a texel of [`pack`](TexelFormat::pack).
    pub fn unpack(self, texel: u128) -> [u64; 4] {
        let mut at = 0;
        std::array::from_fn(|index| {
            let bits = self.bits[index];
            let component = texel.checked_shr(at).unwrap_or(0) as u64 & mask(bits);
            at += bits;
            let normalize = |number: f64, steps: u64| float_to_bits((number / steps as f64).max(-1.0), 32);
            match (self.encoding, bits) {
                (_, 0) => self.missing_component(index),
                (ComponentEncoding::Float, 16) => float_to_bits(float_from_bits(component, 16), 32),
                (ComponentEncoding::Unorm, _) => normalize(component as f64, mask(bits)),
                (ComponentEncoding::Snorm, _) => {
                    normalize(sign_extend(component, bits) as f64, mask(bits - 1))
                }
                (ComponentEncoding::Signed, _) => {
                    sign_extend(component, bits) as u64 & mask(self.number_bits())
                }
                (ComponentEncoding::Float | ComponentEncoding::Unsigned, _) => component,
            }
        })
    }

    /// Returns the value of a missing component ("Conversion to RGBA").
    fn missing_component(self, component: usize) -> u64 {
        let one = if matches!(self.encoding, ComponentEncoding::Signed | ComponentEncoding::Unsigned) {
            1
        } else {
            float_to_bits(1.0, 32)
        };
        if component == 3 { one } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::TexelFormat;

    fn quantize_exact(format: u32, component: usize, value: f32) -> f32 {
        let (bits, is_exact) =
            TexelFormat::from_spirv_format(format).unwrap().quantize(component, value.to_bits().into());
        assert!(is_exact);
        f32::from_bits(bits as u32)
    }

    #[test]
    fn stored_texels_are_rounded_to_their_format() {
        // `rgba8`, `rgba8_snorm`, `r16f`, `rgb10_a2`.
        assert_eq!(
            [0.5, 2.0, -1.0, f32::NAN].map(|value| quantize_exact(4, 1, value)),
            [128.0 / 255.0, 1.0, 0.0, 0.0]
        );
        assert_eq!([0.5, -3.0].map(|value| quantize_exact(5, 0, value)), [64.0 / 127.0, -1.0]);
        assert_eq!(quantize_exact(9, 0, 0.1), 0.099_975_586);
        assert_eq!([0.4, 0.8].map(|value| quantize_exact(11, 3, value)), [1.0 / 3.0, 2.0 / 3.0]);
        // Missing components.
        assert_eq!([1, 2, 3].map(|component| quantize_exact(3, component, 7.0)), [0.0, 0.0, 1.0]);
        let integer = |format: u32, component: usize, value: i32| {
            TexelFormat::from_spirv_format(format).unwrap().quantize(component, u64::from(value as u32))
        };
        assert_eq!(integer(33, 3, 7), (1, true));
        // `r8i`, `r8ui`.
        assert_eq!(
            [integer(29, 0, -128), integer(39, 0, 255)],
            [(u64::from(-128_i32 as u32), true), (255, true)]
        );
        let packed = |format: u32, components: [f32; 4]| {
            TexelFormat::from_spirv_format(format)
                .unwrap()
                .pack(components.map(|value| value.to_bits().into()))
        };
        assert_eq!(packed(4, [0.0, 1.0, 128.0 / 255.0, 0.0]), Some(0x0080_ff00));
        assert_eq!(packed(5, [-1.0, 0.0, 1.0, 0.0]), Some(0x007f_0081));
        assert_eq!(packed(7, [1.0, -2.0, 5.0, 5.0]), Some(0xc000_3c00));
        let least = TexelFormat::from_spirv_format(5).unwrap().unpack(0x0000_8081);
        assert_eq!([least[0], least[1]], [u64::from((-1.0_f32).to_bits()); 2]);
        assert_eq!(packed(11, [1.0, 0.0, 0.0, 1.0]), Some(0xc000_03ff));
        for format in (1..=41).filter(|format| *format != 8) {
            let format = TexelFormat::from_spirv_format(format).unwrap();
            let stored =
                0x1122_3344_5566_7788_1234_5678_1234_5678 & u128::MAX >> (128 - 8 * format.texel_bytes());
            assert_eq!(format.pack(format.unpack(stored)), Some(stored), "{format:?}");
        }
        assert_eq!(packed(8, [0.0; 4]), None);
        assert_eq!([integer(29, 0, 128).1, integer(39, 0, 256).1], [false; 2]);
    }
}
