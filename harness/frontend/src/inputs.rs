//! What a kernel is given: contents of buffers by name, and files that hold all of a kernel's inputs.

use std::collections::BTreeMap;
use std::fmt;

use toml::{Table, Value};

use crate::error::Problem;
use crate::grid::Sampler;
use crate::lift::{DEFAULT_BYTES, Options};

/// Bytes of a buffer at most.
pub const MAX_BYTES: u64 = 1 << 28;

/// A file of inputs.
#[derive(Clone, Debug, Default)]
pub struct CaseFile {
    /// The module that it is for, as the file names it.
    pub module: Option<String>,
    /// What it says.
    pub options: Options,
}

/// Texels of an image at most.
const MAX_TEXELS: u64 = 1 << 24;

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageInput {
    /// Width, height, and depth or layers.
    pub size: [u32; 3],
    /// Levels, or where an array of images has the binding, its elements.
    pub levels: u32,
    /// What its components hold.
    pub texels: TexelInput,
}

/// What the components of an image hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TexelInput {
    /// What a word says: `zeros`, `iota`, `random` or `floats`.
    Word(String),
    /// Four components of 32 bits a texel, row after row, slice after slice, level after level: floats where the format has
    /// floats or normalised numbers, else integers. Texels behind the end are zero.
    Bytes(Vec<u8>),
}

impl Default for TexelInput {
    fn default() -> TexelInput {
        TexelInput::Word("zeros".to_owned())
    }
}

impl TexelInput {
    /// That many bytes; `None` where the word is none.
    pub fn bytes(&self, count: u64) -> Option<Vec<u8>> {
        let mut bytes = match self {
            TexelInput::Word(word) => filled(word, count)?,
            TexelInput::Bytes(bytes) => bytes.clone(),
        };
        bytes.resize(usize::try_from(count.min(MAX_BYTES)).unwrap_or(usize::MAX), 0);
        Some(bytes)
    }
}

/// A buffer behind an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressInput {
    /// What a reader calls it; places that are given the same name point to one buffer.
    pub name: String,
    /// Where the address stands.
    pub at: AddressPlace,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Where an address stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressPlace {
    /// At an offset of the push constants.
    Push(u64),
    /// At an offset of the buffer that a set and a binding have.
    Buffer((u32, u32), u64),
    /// In a member by the names of the module: `block.member`, `block.members[2].pointer`.
    Member(String),
}

impl Default for AddressPlace {
    fn default() -> AddressPlace {
        AddressPlace::Push(0)
    }
}

impl fmt::Display for AddressPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressPlace::Push(offset) => write!(formatter, "push@{offset}"),
            AddressPlace::Buffer((set, binding), offset) => write!(formatter, "{set}.{binding}@{offset}"),
            AddressPlace::Member(path) => formatter.write_str(path),
        }
    }
}

impl AddressPlace {
    /// Reads `push@OFFSET`, `SET.BINDING@OFFSET` or the name of a member; `None` for anything else.
    pub fn parse(text: &str) -> Option<AddressPlace> {
        match text.split_once('@') {
            Some(("push", offset)) => offset.parse().ok().map(AddressPlace::Push),
            Some((object, offset)) => Some(AddressPlace::Buffer(place(object)?, offset.parse().ok()?)),
            None if text.is_empty() => None,
            None => Some(AddressPlace::Member(text.to_owned())),
        }
    }
}

/// The contents of a buffer that a word names: `zeros`, `iota`, `random`, `floats`; `None` for other words.
pub fn filled(word: &str, bytes: u64) -> Option<Vec<u8>> {
    let words = bytes.min(MAX_BYTES).div_ceil(4);
    let mut state = 1_u64;
    let mut random = || {
        // A generator of Marsaglia's (xorshift64*), from the seed 1.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    };
    let words: Vec<u32> = match word {
        "zeros" => (0..words).map(|_| 0).collect(),
        "iota" => (0..words).map(|word| word as u32).collect(),
        "random" => (0..words).map(|_| random()).collect(),
        "floats" => (0..words).map(|_| (random() as f32 / u32::MAX as f32 * 2.0 - 1.0).to_bits()).collect(),
        _ => return None,
    };
    let mut all: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    all.truncate(usize::try_from(bytes.min(MAX_BYTES)).unwrap_or(usize::MAX));
    Some(all)
}

/// What a file beside a case has, by its name, or why it cannot be read.
pub type Beside<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Reads a file of inputs; what it names with `file = "…"` is asked for.
///
/// # Errors
/// What of it is not understood, or cannot be read.
pub fn case_file(text: &str, beside: Beside<'_>) -> Result<CaseFile, Problem> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| Problem::Input(error.to_string()))?;
    let mut case = CaseFile::default();
    let options = &mut case.options;
    for (key, value) in &table {
        match (key.as_str(), value) {
            ("module", Value::String(module)) => case.module = Some(module.clone()),
            ("entry", Value::String(entry)) => options.entry = Some(entry.clone()),
            ("grid", Value::Array(grid)) => {
                let grid = numbers(grid).and_then(|grid| <[u32; 3]>::try_from(grid).ok());
                options.grid = Some(grid.ok_or_else(|| wrong(key, "three numbers"))?);
            }
            ("subgroup_size", value) => {
                let size = small(value).filter(|size| *size > 0);
                options.subgroup_size = Some(size.ok_or_else(|| wrong(key, "a number from 1 on"))?);
            }
            ("unroll", value) => {
                options.unroll = Some(small(value).ok_or_else(|| wrong(key, "a number"))?);
            }
            ("spec", Value::Table(constants)) => {
                for (id, value) in constants {
                    let number: u32 = id.parse().map_err(|_| wrong(key, "ids of constants"))?;
                    let bits = match value {
                        Value::Float(float) => u64::from((*float as f32).to_bits()),
                        Value::Boolean(truth) => u64::from(*truth),
                        Value::Integer(integer) => *integer as u64,
                        _ => return Err(wrong(key, "numbers")),
                    };
                    options.specialization.insert(number, bits);
                }
            }
            ("push", Value::Array(parts)) => {
                for part in parts {
                    let part = part.as_table().ok_or_else(|| wrong(key, "a list of tables"))?;
                    let offset = part.get("offset").and_then(Value::as_integer).unwrap_or(0);
                    let at = u64::try_from(offset).map_err(|_| wrong(key, "offsets"))?;
                    options.push.extend((at..).zip(typed(key, part)?));
                }
            }
            ("input", Value::Table(inputs)) => {
                for (location, values) in inputs {
                    let location = location.parse().map_err(|_| wrong(key, "locations"))?;
                    let values = values.as_table().ok_or_else(|| wrong(key, "tables"))?;
                    options.given.insert(location, typed(key, values)?);
                }
            }
            ("buffer", Value::Table(buffers)) => {
                for (name, buffer) in buffers {
                    let place = place(name).ok_or_else(|| wrong(key, "SET.BINDING"))?;
                    let buffer = buffer.as_table().ok_or_else(|| wrong(key, "tables"))?;
                    options.buffers.insert(place, contents(key, buffer, &[], beside)?);
                }
            }
            ("image", Value::Table(images)) => {
                for (name, image) in images {
                    let place = place(name).ok_or_else(|| wrong(key, "SET.BINDING"))?;
                    let image = image.as_table().ok_or_else(|| wrong(key, "tables"))?;
                    options.images.insert(place, image_of(key, image, beside)?);
                }
            }
            ("address", Value::Table(addresses)) => {
                for (name, address) in addresses {
                    let address = address.as_table().ok_or_else(|| wrong(key, "tables"))?;
                    options.addresses.push(address_of(key, name, address, beside)?);
                }
            }
            ("sampler", Value::Table(samplers)) => {
                for (name, sampler) in samplers {
                    let place = place(name).ok_or_else(|| wrong(key, "SET.BINDING"))?;
                    let sampler = sampler.as_table().ok_or_else(|| wrong(key, "tables"))?;
                    only(key, sampler, &["filter", "edge"])?;
                    // Of a sampler without a filter nothing is computed.
                    let word = |word: &str| sampler.get(word).and_then(Value::as_str);
                    let Some(filter) = word("filter") else { continue };
                    let text = format!("{filter},{}", word("edge").unwrap_or("repeat"));
                    let sampler = Sampler::parse(&text).ok_or_else(|| {
                        wrong(
                            key,
                            "filter = \"nearest\" or \"linear\", edge = \"repeat\", \"mirror\" or \"clamp\"",
                        )
                    })?;
                    options.samplers.insert(place, sampler);
                }
            }
            _ => return Err(Problem::Input(format!("unknown key `{key}`, or not of its kind"))),
        }
    }
    Ok(case)
}

fn image_of(key: &str, image: &Table, beside: Beside<'_>) -> Result<ImageInput, Problem> {
    only(key, image, &["size", "mips", "fill", "file"])?;
    let size = image.get("size").and_then(Value::as_array).and_then(|size| numbers(size));
    let levels = image.get("mips").map_or(Some(1), small).ok_or_else(|| wrong(key, "a number of mips"))?;
    let texels = match of_file(key, image, beside)? {
        Some(bytes) => TexelInput::Bytes(bytes),
        None => TexelInput::Word(fill_of(key, image)?.to_owned()),
    };
    ImageInput::new(&size.unwrap_or_default(), levels, texels).ok_or_else(|| wrong(key, "a size"))
}

impl ImageInput {
    /// An image of one to three sizes; `None` where there are none or it is too large.
    fn new(size: &[u32], levels: u32, texels: TexelInput) -> Option<ImageInput> {
        let at = |axis: usize| size.get(axis).copied().unwrap_or(1);
        let count = (0..3).fold(1_u64, |all, axis| all.saturating_mul(u64::from(at(axis))));
        let size = (!size.is_empty() && size.len() <= 3 && (1..=MAX_TEXELS).contains(&count))
            .then(|| [at(0), at(1), at(2)])?;
        Some(ImageInput { size, levels, texels })
    }

    /// Reads `WIDTH`, `WIDTHxHEIGHT` or `WIDTHxHEIGHTxDEPTH`, with `,mips=N` and `,fill=WORD` behind it.
    pub fn parse(text: &str) -> Option<ImageInput> {
        let mut parts = text.split(',');
        let size = parts.next()?.split('x').map(|axis| axis.parse().ok()).collect::<Option<Vec<u32>>>()?;
        let (mut levels, mut fill) = (1, "zeros");
        for part in parts {
            match part.split_once('=')? {
                ("mips", count) => levels = count.parse().ok()?,
                ("fill", word) => fill = word,
                _ => return None,
            }
        }
        filled(fill, 0)?;
        ImageInput::new(&size, levels, TexelInput::Word(fill.to_owned()))
    }
}

fn address_of(key: &str, name: &str, address: &Table, beside: Beside<'_>) -> Result<AddressInput, Problem> {
    let at = address.get("at").and_then(Value::as_str).and_then(AddressPlace::parse);
    let at = at.ok_or_else(|| wrong(key, "push@OFFSET, SET.BINDING@OFFSET or a member"))?;
    let bytes = contents(key, address, &["at"], beside)?;
    Ok(AddressInput { name: name.to_owned(), at, bytes })
}

fn wrong(key: &str, expected: &str) -> Problem {
    Problem::Input(format!("`{key}`: {expected} expected"))
}

fn small(value: &Value) -> Option<u32> {
    value.as_integer().and_then(|number| u32::try_from(number).ok())
}

fn numbers(values: &[Value]) -> Option<Vec<u32>> {
    values.iter().map(small).collect()
}

/// A key that nothing is made of would be contents that are not there.
fn only(key: &str, table: &Table, known: &[&str]) -> Result<(), Problem> {
    match table.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(wrong(key, &format!("{}, not `{name}`,", known.join(", ")))),
        None => Ok(()),
    }
}

fn fill_of<'a>(key: &str, table: &'a Table) -> Result<&'a str, Problem> {
    let word = table.get("fill").map_or(Some("zeros"), Value::as_str);
    word.filter(|word| filled(word, 0).is_some()).ok_or_else(|| wrong(key, "zeros, iota, random or floats"))
}

fn of_file(key: &str, table: &Table, beside: Beside<'_>) -> Result<Option<Vec<u8>>, Problem> {
    let Some(name) = table.get("file") else { return Ok(None) };
    let name = name.as_str().ok_or_else(|| wrong(key, "file = \"NAME\""))?;
    beside(name).map(Some).map_err(|why| Problem::Input(format!("`{key}`: {name}: {why}")))
}

/// `SET.BINDING`.
pub fn place(name: &str) -> Option<(u32, u32)> {
    let (set, binding) = name.split_once('.')?;
    Some((set.parse().ok()?, binding.parse().ok()?))
}

/// What a buffer holds: a file or a word for all of it, then the numbers that are given. `others` are keys of the table that are
/// none of contents.
fn contents(key: &str, buffer: &Table, others: &[&str], beside: Beside<'_>) -> Result<Vec<u8>, Problem> {
    let numbers = |name: &str| matches!(buffer.get(name), Some(Value::Array(_)));
    let unknown = buffer.keys().find(|name| {
        !["bytes", "fill", "file"].contains(&name.as_str())
            && !others.contains(&name.as_str())
            && !numbers(name)
    });
    if let Some(name) = unknown {
        return Err(wrong(key, &format!("bytes, fill, file or numbers, not `{name}`,")));
    }
    let bytes = match buffer.get("bytes") {
        None => None,
        Some(bytes) => {
            let bytes = bytes.as_integer().and_then(|bytes| u64::try_from(bytes).ok());
            Some(bytes.filter(|bytes| *bytes <= MAX_BYTES).ok_or_else(|| wrong(key, "a number of bytes"))?)
        }
    };
    let words = typed(key, buffer)?;
    // Who lists all that it holds says how long it is.
    let listed = buffer.iter().any(|(name, values)| values.is_array() && !name.ends_with("_at"));
    let length = if listed { words.len() as u64 } else { DEFAULT_BYTES };
    let fill = fill_of(key, buffer)?;
    let mut all = match of_file(key, buffer, beside)? {
        Some(mut all) => {
            all.resize(bytes.map_or(all.len(), |bytes| bytes as usize), 0);
            all
        }
        None => filled(fill, bytes.unwrap_or(length)).unwrap_or_default(),
    };
    put(key, &mut all, 0, &words)?;
    for (name, parts) in buffer {
        let (Some(_), Some(parts)) = (name.strip_suffix("_at"), parts.as_array()) else { continue };
        for part in parts {
            let part = part.as_table().ok_or_else(|| wrong(key, "a list of tables"))?;
            let offset = part.get("offset").and_then(Value::as_integer).unwrap_or(0);
            put(key, &mut all, usize::try_from(offset).unwrap_or(usize::MAX), &typed(key, part)?)?;
        }
    }
    Ok(all)
}

fn put(key: &str, all: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), Problem> {
    let length = all.len();
    let place = at.checked_add(bytes.len()).and_then(|end| all.get_mut(at..end));
    let place = place.ok_or_else(|| {
        wrong(key, &format!("numbers within its {length} bytes, not {} bytes at offset {at},", bytes.len()))
    })?;
    place.copy_from_slice(bytes);
    Ok(())
}

/// The bytes that the typed keys of a table give: `u32 = […]` and so on.
fn typed(key: &str, table: &Table) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    for (name, values) in table {
        let Some(values) = values.as_array().filter(|_| !name.ends_with("_at")) else { continue };
        for value in values {
            let integer = value.as_integer();
            let float = value.as_float().or(integer.map(|integer| integer as f64));
            let whole = || integer.ok_or_else(|| wrong(key, "integers"));
            let real = || float.ok_or_else(|| wrong(key, "numbers"));
            match name.as_str() {
                "u8" | "i8" => bytes.push(whole()? as u8),
                "u16" | "i16" => bytes.extend((whole()? as u16).to_le_bytes()),
                "u32" | "i32" => bytes.extend((whole()? as u32).to_le_bytes()),
                "u64" | "i64" => bytes.extend((whole()? as u64).to_le_bytes()),
                "f16" => bytes.extend(crate::text::half_of(real()?).to_le_bytes()),
                "f32" => bytes.extend((real()? as f32).to_le_bytes()),
                "f64" => bytes.extend(real()?.to_le_bytes()),
                other => return Err(wrong(key, &format!("u8 to f64, not `{other}`,"))),
            }
        }
    }
    Ok(bytes)
}

/// Adds what the second, a case, says to the first, where the first says nothing.
pub fn merged(mut first: Options, second: Options) -> Options {
    first.of_case = Some(Box::new(Options {
        buffers: second.buffers.keys().map(|place| (*place, Vec::new())).collect(),
        images: second.images.keys().map(|place| (*place, ImageInput::default())).collect(),
        samplers: second.samplers.clone(),
        specialization: second.specialization.clone(),
        push: second.push.clone(),
        ..Options::default()
    }));
    first.entry = first.entry.or(second.entry);
    first.grid = first.grid.or(second.grid);
    first.subgroup_size = first.subgroup_size.or(second.subgroup_size);
    first.unroll = first.unroll.or(second.unroll);
    first.assertion = first.assertion.or(second.assertion);
    let mut push: BTreeMap<u64, u8> = second.push;
    push.extend(first.push);
    first.push = push;
    let mut specialization = second.specialization;
    specialization.extend(first.specialization);
    first.specialization = specialization;
    let mut buffers = second.buffers;
    buffers.extend(first.buffers);
    first.buffers = buffers;
    let mut given = second.given;
    given.extend(first.given);
    first.given = given;
    let mut images = second.images;
    images.extend(first.images);
    first.images = images;
    let mut samplers = second.samplers;
    samplers.extend(first.samplers);
    first.samplers = samplers;
    first.addresses.extend(second.addresses);
    first
}
