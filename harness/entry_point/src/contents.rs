//! Contents of memory: fill words, images, and buffers at addresses.

use std::fmt;

use litmus::closed_enum;
use rspirv::spirv::{ImageFormat, StorageClass};
use spirv_reader::Specialized;
use spirv_reader::annotations::parse_binding;

/// Upper bound on the size of a buffer.
pub const MAX_BYTES: u64 = 1 << 28;
/// Size of a buffer whose content is not given.
pub const DEFAULT_BYTES: u64 = 64 * 1024;
/// Upper bound on the texels of an image.
const MAX_TEXELS: u64 = 1 << 24;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageInput {
    /// Width, height, and depth or layers.
    pub size: [u32; 3],
    /// Mip levels, or elements of an image array.
    pub levels: u32,
    pub texels: TexelInput,
    /// The number of its SPIR-V format, if it is given.
    pub format: Option<u32>,
}

impl ImageInput {
    /// Returns an image of one to three dimensions; `None` if there are none, or if it is too large.
    pub fn new(size: &[u32], levels: u32, texels: TexelInput) -> Option<ImageInput> {
        let at = |axis: usize| size.get(axis).copied().unwrap_or(1);
        let count = (0..3).fold(1_u64, |all, axis| all.saturating_mul(u64::from(at(axis))));
        let size = (!size.is_empty() && size.len() <= 3 && (1..=MAX_TEXELS).contains(&count))
            .then(|| [at(0), at(1), at(2)])?;
        Some(ImageInput { size, levels, texels, format: None })
    }

    /// Parses `WIDTH`, `WIDTHxHEIGHT` or `WIDTHxHEIGHTxDEPTH`, with optional `,mips=N`, `,fill=WORD` and
    /// `,format=NAME`, as GLSL names it.
    pub fn parse(text: &str) -> Option<ImageInput> {
        let mut parts = text.split(',');
        let size = parts.next()?.split('x').map(|axis| axis.parse().ok()).collect::<Option<Vec<u32>>>()?;
        let (mut levels, mut fill, mut format) = (1, "zeros", None);
        for part in parts {
            match part.split_once('=')? {
                ("mips", count) => levels = count.parse().ok()?,
                ("fill", word) => fill = word,
                ("format", name) => {
                    let has_name = |of: &ImageFormat| format!("{of:?}").eq_ignore_ascii_case(name);
                    let known = (1..).map_while(ImageFormat::from_u32).find(has_name)?;
                    format = Some(known as u32);
                }
                _ => return None,
            }
        }
        fill_bytes(fill, 0)?;
        let image = ImageInput::new(&size, levels, TexelInput::Word(fill.to_owned()))?;
        Some(ImageInput { format, ..image })
    }
}

/// Returns a zero image with a default size for its dimension.
pub fn default_image(dimension: u32, arrayed: bool) -> ImageInput {
    let size = match dimension {
        // 1D and texel buffers.
        0 | 5 => [4096, 1, 1],
        2 => [16; 3],
        // A cube has six faces.
        3 => [64, 64, 6],
        _ => [64, 64, if arrayed { 4 } else { 1 }],
    };
    ImageInput { size, levels: 1, ..ImageInput::default() }
}

/// The contents of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TexelInput {
    /// A fill word, see [`fill_bytes`].
    Word(String),
    /// Four 32-bit components per texel, by row, slice and level.
    ///
    /// They are floats for float and normalized formats, else integers. Missing texels are zero.
    Bytes(Vec<u8>),
}

impl Default for TexelInput {
    fn default() -> TexelInput {
        TexelInput::Word("zeros".to_owned())
    }
}

impl TexelInput {
    /// Returns `count` bytes; `None` for an unknown fill word.
    pub fn to_bytes(&self, count: u64) -> Option<Vec<u8>> {
        let mut bytes = match self {
            TexelInput::Word(word) => fill_bytes(word, count)?,
            TexelInput::Bytes(bytes) => bytes.clone(),
        };
        bytes.resize(usize::try_from(count.min(MAX_BYTES)).unwrap_or(usize::MAX), 0);
        Some(bytes)
    }
}

/// A buffer that an address points to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressInput {
    /// Its name; equal names share one buffer.
    pub name: String,
    pub at: AddressTarget,
    /// The byte of the buffer that the address is of.
    pub offset: u64,
    /// The contents; of the buffers of one name, the first one's.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressTarget {
    /// An offset in the push constants.
    Push(u64),
    /// An offset in the buffer of a set and binding.
    Buffer((u32, u32), u64),
    /// An offset in a buffer that an address points to, by its name.
    Address(String, u64),
    /// A member by its source name: `block.member`, `block.members[2].pointer`.
    Member(String),
}

impl Default for AddressTarget {
    fn default() -> AddressTarget {
        AddressTarget::Push(0)
    }
}

impl fmt::Display for AddressTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressTarget::Push(offset) => write!(formatter, "push@{offset}"),
            AddressTarget::Buffer((set, binding), offset) => write!(formatter, "{set}.{binding}@{offset}"),
            AddressTarget::Address(name, offset) => write!(formatter, "{name}@{offset}"),
            AddressTarget::Member(path) => formatter.write_str(path),
        }
    }
}

impl AddressTarget {
    /// Parses `push@OFFSET`, `SET.BINDING@OFFSET`, `NAME@OFFSET` of another address, or a member name; `None` if malformed.
    pub fn parse(text: &str) -> Option<AddressTarget> {
        match text.split_once('@') {
            Some(("push", offset)) => offset.parse().ok().map(AddressTarget::Push),
            Some((object, offset)) => {
                let offset = offset.parse().ok()?;
                let binding = parse_binding(object);
                (!object.is_empty()).then(|| match binding {
                    Some(place) => AddressTarget::Buffer(place, offset),
                    None => AddressTarget::Address(object.to_owned(), offset),
                })
            }
            None if text.is_empty() => None,
            None => Some(AddressTarget::Member(text.to_owned())),
        }
    }
}

pub const FILL_WORDS: [&str; 9] =
    ["zeros", "iota", "floats", "small", "random", "spaced", "pairs", "ones", "wide-floats"];

/// Returns the bytes of a fill word: `zeros`, `iota`, `spaced` (multiples of 64), `pairs` (0, 1, 1, 2, 2, …), `ones` (all bits set), `small`
/// (random numbers from 0 to 15), `random`, `floats` (from -1 to 1) or `wide-floats` (of magnitudes from 1/16 to 1024); `None` for other words.
pub fn fill_bytes(word: &str, bytes: u64) -> Option<Vec<u8>> {
    let words = bytes.min(MAX_BYTES).div_ceil(4);
    let mut state = 1_u64;
    let mut random = || {
        // Marsaglia's xorshift64*, seeded with 1.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    };
    let words: Vec<u32> = match word {
        "zeros" => (0..words).map(|_| 0).collect(),
        "iota" => (0..words).map(|word| word as u32).collect(),
        "small" => (0..words).map(|_| random() % 16).collect(),
        "random" => (0..words).map(|_| random()).collect(),
        // The two members of an edge differ, and adjacent edges share one.
        "pairs" => (0..words).map(|word| (word as u32).div_ceil(2)).collect(),
        "ones" => (0..words).map(|_| u32::MAX).collect(),
        "spaced" => (0..words).map(|word| (word as u32).wrapping_mul(64)).collect(),
        "wide-floats" => (0..words)
            .map(|_| {
                let bits = random();
                // Four bits choose the power of two, the lowest byte the fraction, and the highest
                // bit the sign.
                let magnitude = f32::from(1_u16 << (bits >> 8 & 0xf).min(14)) / 16.0;
                let fraction = 1.0 + (bits & 0xff) as f32 / 256.0;
                (if bits >> 31 == 0 { fraction * magnitude } else { -fraction * magnitude }).to_bits()
            })
            .collect(),
        "floats" => (0..words).map(|_| (random() as f32 / u32::MAX as f32 * 2.0 - 1.0).to_bits()).collect(),
        _ => return None,
    };
    let mut all: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    all.truncate(usize::try_from(bytes.min(MAX_BYTES)).unwrap_or(usize::MAX));
    Some(all)
}

/// Parses a decimal or hexadecimal integer; `None` if it does not fit in `bits`, signed or unsigned.
pub fn parse_integer(text: &str, bits: u32) -> Option<u64> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => i128::from(u64::from_str_radix(digits, 16).ok()?),
        None => text.parse().ok()?,
    };
    (-1_i128 << (bits - 1) <= number && number < 1_i128 << bits).then_some(number as u64)
}

closed_enum! {
    /// The results of the ray queries of a walk, named as in `--rays`.
    #[derive(Default)]
    pub enum RayResults {
        /// Every second ray hits: neighbouring invocations differ, and so do the rays of one invocation.
        #[default]
        Alternating = "alternating",
        /// Every ray hits a triangle.
        Hit = "hit",
        /// No ray hits anything.
        Miss = "miss",
    }
}

impl RayResults {
    pub fn describe(self) -> &'static str {
        match self {
            RayResults::Alternating => "every second ray hits",
            RayResults::Hit => "every ray hits",
            RayResults::Miss => "no ray hits",
        }
    }

    /// Returns true if the ray with this number of an invocation hits.
    pub fn hits(self, invocation: u32, ray: u32) -> bool {
        match self {
            RayResults::Alternating => (invocation ^ ray) & 1 == 1,
            RayResults::Hit => true,
            RayResults::Miss => false,
        }
    }
}

/// Returns the offset of an address in a variable; `None` if it is elsewhere.
pub fn address_offset_in(specialized: &Specialized<'_>, variable: u32, at: &AddressTarget) -> Option<u64> {
    let module = specialized.module;
    let declared = module.variables.get(&variable)?;
    let decorations = module.decorations_of(variable);
    match at {
        AddressTarget::Push(offset) => (declared.class == StorageClass::PushConstant).then_some(*offset),
        AddressTarget::Buffer((set, binding), offset) => {
            ((decorations.set, decorations.binding) == (Some(*set), Some(*binding))).then_some(*offset)
        }
        AddressTarget::Address(..) => None,
        AddressTarget::Member(path) => {
            let block = matches!(
                declared.class,
                StorageClass::PushConstant | StorageClass::StorageBuffer | StorageClass::Uniform
            );
            // An unnamed block has the name of its type, or its members have no qualifier.
            let names = [module.display_name(variable), module.display_name(declared.ty)];
            let behind = names.iter().find_map(|name| path.strip_prefix(name.as_str())?.strip_prefix('.'));
            block.then(|| member_offset(specialized, declared.ty, behind.unwrap_or(path)))?
        }
    }
}

/// Returns the offset of a path such as `a.b[2].c`.
fn member_offset(specialized: &Specialized<'_>, mut ty: u32, path: &str) -> Option<u64> {
    let mut offset = 0_u64;
    for word in path.split('.') {
        let (name, elements) = word.split_at(word.find('[').unwrap_or(word.len()));
        let mut steps = vec![specialized.module.member_by_name(ty, name)?];
        for element in elements.split_terminator(']') {
            steps.push(element.strip_prefix('[')?.parse().ok()?);
        }
        for step in steps {
            let part = specialized.part_of(ty, step).ok()?;
            (ty, offset) = (part.ty, offset.checked_add(part.offset)?);
        }
    }
    Some(offset)
}
