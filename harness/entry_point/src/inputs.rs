//! Inputs of a kernel: buffer contents by name, and case files with all inputs.

use std::collections::BTreeMap;

use toml::{Table, Value};

pub use crate::contents::{
    AddressInput, AddressTarget, DEFAULT_BYTES, FILL_WORDS, ImageInput, MAX_BYTES, RayResults, TexelInput,
    address_offset_in, default_image, fill_bytes, parse_integer,
};
use crate::error::{self, Problem, Refusal, unsupported};
use crate::options::{AnalysisOptions, InputBytes};
use crate::robustness::{BufferRobustness, Robustness};
pub use crate::sampler::{AddressMode, Sampler};
pub use spirv_reader::annotations::parse_binding;
use spirv_reader::{HlslRules, ShaderLanguage, SourcePosition, SpirvModule};

#[derive(Clone, Debug, Default)]
pub struct CaseFile {
    /// The module that the file names.
    pub module: Option<String>,
    pub options: AnalysisOptions,
}

/// Reads a file next to the case file, or returns why it cannot be read.
pub type SiblingReader<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Why a case file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// The text is not TOML.
    #[error(transparent)]
    Syntax(#[from] Box<toml::de::Error>),
    #[error("unknown key `{0}`, or a value of the wrong type")]
    UnknownKey(String),
    #[error("{problem}")]
    Value { key: String, problem: Box<Problem> },
}

impl CaseError {
    /// Returns the bytes of the text that the error is about, if the parser found it.
    pub fn span(&self) -> Option<std::ops::Range<usize>> {
        match self {
            CaseError::Syntax(error) => error.span(),
            CaseError::UnknownKey(_) | CaseError::Value { .. } => None,
        }
    }

    /// Returns the key at the top of the file that is wrong.
    pub fn key(&self) -> Option<&str> {
        match self {
            CaseError::Syntax(_) => None,
            CaseError::UnknownKey(key) | CaseError::Value { key, .. } => Some(key),
        }
    }

    /// Returns the message without the text of the file.
    pub fn message(&self) -> String {
        match self {
            CaseError::Syntax(error) => error.message().to_owned(),
            other => other.to_string(),
        }
    }
}

/// Parses a case file; `read_sibling` reads the files that it names.
///
/// # Errors
/// Describes the malformed key or unreadable file.
pub fn parse_case_file(text: &str, read_sibling: SiblingReader<'_>) -> Result<CaseFile, CaseError> {
    let table: Table = text.parse().map_err(Box::new)?;
    let mut case = CaseFile::default();
    for (key, value) in &table {
        let read = read_case_key(&mut case, key, value, read_sibling);
        if !read.map_err(|problem| CaseError::Value { key: key.clone(), problem: Box::new(problem) })? {
            return Err(CaseError::UnknownKey(key.clone()));
        }
    }
    // One step, so that the order of the descriptors does not matter.
    let aliases = &case.options.aliases;
    let chained = aliases.iter().find(|(_, to)| aliases.contains_key(to));
    if let Some(((set, binding), (to_set, to_binding))) = chained {
        let expected = format!(
            "for {set}.{binding}, an alias of a buffer that is not an alias itself, as {to_set}.{to_binding} is"
        );
        let key = "buffer".to_owned();
        return Err(CaseError::Value { problem: Box::new(invalid_key(&key, &expected)), key });
    }
    Ok(case)
}

/// Reads a key at the top of a case file. Returns false if there is none of its name and type.
fn read_case_key(
    case: &mut CaseFile,
    key: &str,
    value: &Value,
    read_sibling: SiblingReader<'_>,
) -> Result<bool, Problem> {
    let options = &mut case.options;
    match (key, value) {
        ("module", Value::String(module)) => case.module = Some(module.clone()),
        ("entry", Value::String(entry)) => options.entry = Some(entry.clone()),
        ("grid", Value::Array(grid)) => {
            let grid = as_u32_list(grid).and_then(|grid| <[u32; 3]>::try_from(grid).ok());
            options.grid = Some(grid.ok_or_else(|| invalid_key(key, "three numbers"))?);
        }
        ("workgroups", Value::Array(positions)) => {
            let position = |value: &Value| <[u32; 3]>::try_from(as_u32_list(value.as_array()?)?).ok();
            let positions = positions.iter().map(position).collect::<Option<Vec<_>>>();
            options.workgroups = positions.ok_or_else(|| invalid_key(key, "positions such as [0, 0, 0]"))?;
        }
        ("subgroup_size", value) => {
            let size = as_u32(value).filter(|size| *size > 0);
            options.subgroup_size = Some(size.ok_or_else(|| invalid_key(key, "a number of at least 1"))?);
        }
        ("rays", Value::String(name)) => {
            let results = RayResults::from_name(name);
            options.ray_queries =
                Some(results.ok_or_else(|| invalid_key(key, "\"alternating\", \"hit\" or \"miss\""))?);
        }
        ("robustness", Value::Table(versions)) => {
            reject_unknown_keys(key, versions, &["storage", "uniform", "images"])?;
            let version = |name: &str| {
                let version =
                    versions.get(name).map_or(Some(0), as_u32).and_then(BufferRobustness::from_version);
                version.ok_or_else(|| invalid_key(key, "0, 1 or 2"))
            };
            let images = versions.get("images").map_or(Some(false), Value::as_bool);
            options.robustness = Some(Robustness {
                storage_buffers: version("storage")?,
                uniform_buffers: version("uniform")?,
                images: images.ok_or_else(|| invalid_key(key, "true or false for `images`"))?,
            });
        }
        ("assume", Value::Array(conditions)) => {
            let texts = conditions.iter().map(|one| one.as_str().map(str::to_owned)).collect();
            options.conditions =
                Option::ok_or_else(texts, || invalid_key(key, "conditions such as \"pc.n % 16 == 0\""))?;
        }
        ("unroll", value) => {
            options.unroll = Some(as_u32(value).ok_or_else(|| invalid_key(key, "a number"))?);
        }
        ("spec", Value::Table(constants)) => {
            for (id, value) in constants {
                let number: u32 =
                    id.parse().map_err(|_| invalid_key(key, "ids of specialization constants"))?;
                let bits = match value {
                    // The type of the constant is not known here.
                    Value::Float(float) => u64::from((*float as f32).to_bits()),
                    Value::Boolean(truth) => u64::from(*truth),
                    Value::Integer(integer) => *integer as u64,
                    _ => return Err(invalid_key(key, "numbers")),
                };
                options.specialization.insert(number, bits);
            }
        }
        ("push", Value::Array(parts)) => {
            for part in parts {
                let part = part.as_table().ok_or_else(|| invalid_key(key, "a list of tables"))?;
                let offset = part.get("offset").and_then(Value::as_integer).unwrap_or(0);
                let offset = u64::try_from(offset).map_err(|_| invalid_key(key, "offsets"))?;
                options.push.extend((offset..).zip(parse_typed_contents(key, part)?));
            }
        }
        ("input", Value::Table(inputs)) => {
            for (location, values) in inputs {
                let location = location.parse().map_err(|_| invalid_key(key, "locations"))?;
                let values = values.as_table().ok_or_else(|| invalid_key(key, "tables"))?;
                options.stage_inputs.insert(location, parse_typed_contents(key, values)?);
            }
        }
        ("buffer", Value::Table(buffers)) => {
            for (name, buffer) in buffers {
                let (set, binding, element) = parse_element(key, name)?;
                let buffer = buffer.as_table().ok_or_else(|| invalid_key(key, "tables"))?;
                if let (Some(alias), None) = (buffer.get("alias"), element) {
                    options.aliases.insert((set, binding), parse_alias(name, buffer, alias)?);
                    continue;
                }
                let contents = parse_contents(key, buffer, read_sibling)?;
                match element {
                    Some(element) => {
                        _ = options.buffer_elements.insert((set, binding, element), contents.into())
                    }
                    None => _ = options.buffers.insert((set, binding), contents.into()),
                }
            }
        }
        ("image", Value::Table(images)) => {
            for (name, image) in images {
                let (set, binding, element) = parse_element(key, name)?;
                let image = image.as_table().ok_or_else(|| invalid_key(key, "tables"))?;
                let image = parse_image(key, image, read_sibling)?;
                match element {
                    Some(element) => _ = options.image_elements.insert((set, binding, element), image),
                    None => _ = options.images.insert((set, binding), image),
                }
            }
        }
        ("address", Value::Table(addresses)) => {
            for (name, address) in addresses {
                let address = address.as_table().ok_or_else(|| invalid_key(key, "tables"))?;
                options.addresses.extend(parse_address(key, name, address, read_sibling)?);
            }
        }
        ("sampler", Value::Table(samplers)) => {
            for (name, sampler) in samplers {
                let place = parse_binding(name).ok_or_else(|| invalid_key(key, "SET.BINDING"))?;
                let sampler = sampler.as_table().ok_or_else(|| invalid_key(key, "tables"))?;
                reject_unknown_keys(key, sampler, &["filter", "edge"])?;
                // A sampler without a filter stays opaque.
                let word = |word: &str| sampler.get(word).and_then(Value::as_str);
                let Some(filter) = word("filter") else { continue };
                let text = format!("{filter},{}", word("edge").unwrap_or("repeat"));
                let sampler = Sampler::parse(&text).ok_or_else(|| {
                    invalid_key(
                        key,
                        "filter = \"nearest\" or \"linear\", edge = \"repeat\", \"mirror\" or \"clamp\"",
                    )
                })?;
                options.samplers.insert(place, sampler);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Parses `SET.BINDING` or `SET.BINDING[ELEMENT]`.
fn parse_element(key: &str, name: &str) -> Result<(u32, u32, Option<u32>), Problem> {
    let (place, element) = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((place, element)) => (place, Some(element.parse().ok())),
        None => (name, None),
    };
    let (set, binding) = parse_binding(place)
        .filter(|_| element != Some(None))
        .ok_or_else(|| invalid_key(key, "SET.BINDING or SET.BINDING[ELEMENT]"))?;
    Ok((set, binding, element.flatten()))
}

/// Parses the descriptor whose buffer another descriptor is bound to.
fn parse_alias(name: &str, buffer: &Table, alias: &Value) -> Result<(u32, u32), Problem> {
    reject_unknown_keys("buffer", buffer, &["alias"])?;
    let alias = alias.as_str().filter(|alias| *alias != name).and_then(parse_binding);
    alias.ok_or_else(|| invalid_key("buffer", "alias = \"SET.BINDING\" of another buffer"))
}

fn parse_image(key: &str, image: &Table, read_sibling: SiblingReader<'_>) -> Result<ImageInput, Problem> {
    reject_unknown_keys(key, image, &["size", "mips", "fill", "file", "u32"])?;
    let size = image.get("size").and_then(Value::as_array).and_then(|size| as_u32_list(size));
    let levels = image
        .get("mips")
        .map_or(Some(1), as_u32)
        .ok_or_else(|| invalid_key(key, "a number of mip levels"))?;
    let texels = match (image.get("u32"), read_sibling_file(key, image, read_sibling)?) {
        (Some(words), _) => {
            let words = words.as_array().and_then(|words| as_u32_list(words));
            let words = words.ok_or_else(|| invalid_key(key, "32-bit numbers in `u32`"))?;
            TexelInput::Bytes(words.into_iter().flat_map(u32::to_le_bytes).collect())
        }
        (None, Some(bytes)) => TexelInput::Bytes(bytes),
        (None, None) => TexelInput::Word(fill_word(key, image)?.to_owned()),
    };
    ImageInput::new(&size.unwrap_or_default(), levels, texels).ok_or_else(|| invalid_key(key, "a size"))
}

/// Returns a buffer behind an address, for each place that has an address of it.
fn parse_address(
    key: &str,
    name: &str,
    address: &Table,
    read_sibling: SiblingReader<'_>,
) -> Result<Vec<AddressInput>, Problem> {
    let mut contents = address.clone();
    contents.retain(|name, _| !["at", "offset", "pointers"].contains(&name));
    let mut bytes = parse_contents(key, &contents, read_sibling)?;
    let pointers = address.get("pointers").map(|all| all.as_array().map_or(&[][..], Vec::as_slice));
    let pointers: Vec<Option<&Table>> =
        pointers.map_or(vec![Some(address)], |all| all.iter().map(Value::as_table).collect());
    let input = |pointer: Option<&Table>| {
        let at = pointer?.get("at").and_then(Value::as_str).and_then(AddressTarget::parse)?;
        let offset = pointer?.get("offset").map_or(Some(0), Value::as_integer)?;
        let bytes = std::mem::take(&mut bytes);
        Some(AddressInput { name: name.to_owned(), at, offset: u64::try_from(offset).ok()?, bytes })
    };
    let expected = "push@OFFSET, SET.BINDING@OFFSET, NAME@OFFSET or a member";
    pointers.into_iter().map(input).collect::<Option<_>>().ok_or_else(|| invalid_key(key, expected))
}

fn invalid_key(key: &str, expected: &str) -> Problem {
    Problem::Input(format!("`{key}`: {expected} expected"))
}

fn as_u32(value: &Value) -> Option<u32> {
    value.as_integer().and_then(|number| u32::try_from(number).ok())
}

fn as_u32_list(values: &[Value]) -> Option<Vec<u32>> {
    values.iter().map(as_u32).collect()
}

/// Rejects unknown keys: a misspelled key would silently leave contents out.
fn reject_unknown_keys(key: &str, table: &Table, known: &[&str]) -> Result<(), Problem> {
    match table.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(invalid_key(key, &format!("{}, not `{name}`,", known.join(", ")))),
        None => Ok(()),
    }
}

fn fill_word<'a>(key: &str, table: &'a Table) -> Result<&'a str, Problem> {
    let word = table.get("fill").map_or(Some("zeros"), Value::as_str);
    word.filter(|word| fill_bytes(word, 0).is_some())
        .ok_or_else(|| invalid_key(key, &format!("a fill word ({})", FILL_WORDS.join(", "))))
}

fn read_sibling_file(
    key: &str,
    table: &Table,
    read_sibling: SiblingReader<'_>,
) -> Result<Option<Vec<u8>>, Problem> {
    let Some(name) = table.get("file") else { return Ok(None) };
    let name = name.as_str().ok_or_else(|| invalid_key(key, "file = \"NAME\""))?;
    read_sibling(name).map(Some).map_err(|why| Problem::Input(format!("`{key}`: {name}: {why}")))
}

/// Returns the content of a buffer: a file or fill word, overwritten by listed numbers.
fn parse_contents(key: &str, buffer: &Table, read_sibling: SiblingReader<'_>) -> Result<Vec<u8>, Problem> {
    let numbers = |name: &str| matches!(buffer.get(name), Some(Value::Array(_)));
    let unknown =
        buffer.keys().find(|name| !["bytes", "fill", "file"].contains(&name.as_str()) && !numbers(name));
    if let Some(name) = unknown {
        return Err(invalid_key(key, &format!("bytes, fill, file or numbers, not `{name}`,")));
    }
    let bytes = match buffer.get("bytes") {
        None => None,
        Some(bytes) => {
            let bytes = bytes.as_integer().and_then(|bytes| u64::try_from(bytes).ok());
            Some(
                bytes
                    .filter(|bytes| *bytes <= MAX_BYTES)
                    .ok_or_else(|| invalid_key(key, "a number of bytes"))?,
            )
        }
    };
    let words = parse_typed_contents(key, buffer)?;
    // A list without a size defines the length.
    let listed = buffer.iter().any(|(name, values)| values.is_array() && !name.ends_with("_at"));
    let length = if listed { words.len() as u64 } else { DEFAULT_BYTES };
    let fill = fill_word(key, buffer)?;
    let mut all = match read_sibling_file(key, buffer, read_sibling)? {
        Some(mut all) => {
            all.resize(bytes.map_or(all.len(), |bytes| bytes as usize), 0);
            all
        }
        None => fill_bytes(fill, bytes.unwrap_or(length)).unwrap_or_default(),
    };
    overwrite_bytes(key, &mut all, 0, &words)?;
    for (name, parts) in buffer {
        let (Some(_), Some(parts)) = (name.strip_suffix("_at"), parts.as_array()) else { continue };
        for part in parts {
            let part = part.as_table().ok_or_else(|| invalid_key(key, "a list of tables"))?;
            let offset = part.get("offset").and_then(Value::as_integer).unwrap_or(0);
            overwrite_bytes(
                key,
                &mut all,
                usize::try_from(offset).unwrap_or(usize::MAX),
                &parse_typed_contents(key, part)?,
            )?;
        }
    }
    Ok(all)
}

fn overwrite_bytes(key: &str, all: &mut [u8], start: usize, bytes: &[u8]) -> Result<(), Problem> {
    let length = all.len();
    let place = start.checked_add(bytes.len()).and_then(|end| all.get_mut(start..end));
    let place = place.ok_or_else(|| {
        invalid_key(
            key,
            &format!("numbers within its {length} bytes, not {} bytes at offset {start},", bytes.len()),
        )
    })?;
    place.copy_from_slice(bytes);
    Ok(())
}

/// Returns the bytes of the typed keys, such as `u32 = […]`.
fn parse_typed_contents(key: &str, table: &Table) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    for (name, values) in table {
        let Some(values) = values.as_array().filter(|_| !name.ends_with("_at")) else { continue };
        for value in values {
            let integer = value.as_integer();
            let float = value.as_float().or(integer.map(|integer| integer as f64));
            let integer_or_error = || integer.ok_or_else(|| invalid_key(key, "integers"));
            let float_or_error = || float.ok_or_else(|| invalid_key(key, "numbers"));
            match name.as_str() {
                "u8" | "i8" => bytes.push(integer_or_error()? as u8),
                "u16" | "i16" => bytes.extend((integer_or_error()? as u16).to_le_bytes()),
                "u32" | "i32" => bytes.extend((integer_or_error()? as u32).to_le_bytes()),
                "u64" | "i64" => bytes.extend((integer_or_error()? as u64).to_le_bytes()),
                "f16" => bytes.extend(spirv_reader::to_half_bits(float_or_error()?).to_le_bytes()),
                "f32" => bytes.extend((float_or_error()? as f32).to_le_bytes()),
                "f64" => bytes.extend(float_or_error()?.to_le_bytes()),
                other => return Err(invalid_key(key, &format!("u8 to f64, not `{other}`,"))),
            }
        }
    }
    Ok(bytes)
}

/// Writes options as a case file that reproduces them.
pub fn write_case_file(options: &AnalysisOptions) -> String {
    let numbers = |bytes: &[u8]| {
        let words = bytes
            .chunks_exact(4)
            .map(|word| word.iter().rev().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)));
        match bytes.len().is_multiple_of(4) {
            true => format!("u32 = {:?}", words.collect::<Vec<_>>()),
            false => format!("u8 = {bytes:?}"),
        }
    };
    let mut text = String::new();
    if let Some(entry) = &options.entry {
        text += &format!("entry = {entry:?}\n");
    }
    if let Some(grid) = options.grid {
        text += &format!("grid = {grid:?}\n");
    }
    if !options.workgroups.is_empty() {
        text += &format!("workgroups = {:?}\n", options.workgroups);
    }
    if let Some(size) = options.subgroup_size {
        text += &format!("subgroup_size = {size}\n");
    }
    if let Some(results) = options.ray_queries {
        text += &format!("rays = \"{}\"\n", results.name());
    }
    if let Some(Robustness { storage_buffers, uniform_buffers, images }) = options.robustness {
        let (storage, uniform) = (storage_buffers.version(), uniform_buffers.version());
        text += &format!("robustness = {{ storage = {storage}, uniform = {uniform}, images = {images} }}\n");
    }
    if let Some(unroll) = options.unroll {
        text += &format!("unroll = {unroll}\n");
    }
    if !options.conditions.is_empty() {
        text += &format!("assume = {:?}\n", options.conditions);
    }
    if !options.specialization.is_empty() {
        text += "\n[spec]\n";
        for (id, value) in options.specialization.iter().collect::<BTreeMap<_, _>>() {
            // TOML integers are signed.
            text += &format!("{id} = {}\n", *value as i64);
        }
    }
    // Adjacent bytes become one entry.
    let mut push: Vec<(u64, Vec<u8>)> = Vec::new();
    for (at, byte) in &options.push {
        match push.last_mut() {
            Some((start, bytes)) if *start + bytes.len() as u64 == *at => bytes.push(*byte),
            _ => push.push((*at, vec![*byte])),
        }
    }
    for (location, bytes) in &options.stage_inputs {
        text += &format!("\n[input.{location}]\n{}\n", numbers(bytes));
    }
    for ((set, binding), sampler) in &options.samplers {
        text += &format!("\n[sampler.\"{set}.{binding}\"]\n{}\n", sampler.to_case_keys());
    }
    for (offset, bytes) in push {
        text += &format!("\n[[push]]\noffset = {offset}\n{}\n", numbers(&bytes));
    }
    let contents = |text: &mut String, bytes: &[u8], scalars: &[(u64, u32)]| {
        let word = crate::assumed::fill_word_of(bytes, scalars);
        if word == "bytes" {
            *text += &format!("{}\n", numbers(bytes));
            return;
        }
        *text += &format!("bytes = {}\nfill = {word:?}\n", bytes.len());
        let filled = fill_bytes(word, bytes.len() as u64).unwrap_or_default();
        // Scalars may differ from the fill.
        let own = scalars.iter().filter_map(|(offset, size)| {
            let range = *offset as usize..(*offset as usize).checked_add(*size as usize)?;
            let (one, other) = (bytes.get(range.clone())?, filled.get(range)?);
            (one != other).then(|| format!("{{ offset = {offset}, u8 = {one:?} }}"))
        });
        let own: Vec<String> = own.collect();
        if !own.is_empty() {
            *text += &format!("u8_at = [{}]\n", own.join(", "));
        }
    };
    for ((set, binding), bytes) in &options.buffers {
        text += &format!("\n[buffer.\"{set}.{binding}\"]\n");
        contents(&mut text, bytes, &crate::assumed::separate_scalars(options, (*set, *binding)));
    }
    for ((set, binding, element), bytes) in &options.buffer_elements {
        text += &format!("\n[buffer.\"{set}.{binding}[{element}]\"]\n");
        contents(&mut text, bytes, &[]);
    }
    for ((set, binding), (to_set, to_binding)) in &options.aliases {
        text += &format!("\n[buffer.\"{set}.{binding}\"]\nalias = \"{to_set}.{to_binding}\"\n");
    }
    let images = options.images.iter().map(|((set, binding), image)| (format!("{set}.{binding}"), image));
    let elements = options.image_elements.iter();
    let elements =
        elements.map(|((set, binding, element), image)| (format!("{set}.{binding}[{element}]"), image));
    for (place, image) in images.chain(elements) {
        let (size, levels) = (image.size, image.levels);
        let texels = match &image.texels {
            TexelInput::Word(word) => format!("fill = {word:?}"),
            TexelInput::Bytes(bytes) => {
                // The last word of a file may be cut off; missing bytes are zero.
                let words = bytes
                    .chunks(4)
                    .map(|word| word.iter().rev().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)));
                format!("u32 = {:?}", words.collect::<Vec<_>>())
            }
        };
        text += &format!("\n[image.\"{place}\"]\nsize = {size:?}\nmips = {levels}\n{texels}\n");
    }
    let mut named: BTreeMap<&str, Vec<&AddressInput>> = BTreeMap::new();
    for address in &options.addresses {
        named.entry(&address.name).or_default().push(address);
    }
    for (name, pointers) in named {
        text += &format!("\n[address.{name:?}]\n");
        let keys = |one: &&AddressInput| match one.offset {
            0 => format!("at = {:?}", one.at.to_string()),
            offset => format!("at = {:?}, offset = {offset}", one.at.to_string()),
        };
        let all: Vec<String> = pointers.iter().map(keys).collect();
        match &all[..] {
            [one] => text += &format!("{}\n", one.replace(", ", "\n")),
            _ => text += &format!("pointers = [{{ {} }}]\n", all.join(" }, { ")),
        }
        contents(&mut text, pointers.first().map_or(&[], |first| &first.bytes), &[]);
    }
    text
}

/// Reads a module, and moves the descriptors that the options bind to the buffer of another one.
///
/// # Errors
/// As for [`read_module`](crate::read_module).
pub fn read_bound_module(bytes: &[u8], options: &AnalysisOptions) -> Result<SpirvModule, Refusal> {
    let mut module = error::read_module(bytes)?;
    module.language = options.language.or(module.language);
    module.hlsl = options.hlsl;
    for (from, to) in &options.aliases {
        module.alias_descriptor(*from, *to);
    }
    if options.hlsl != HlslRules::default() && options.language != Some(ShaderLanguage::Hlsl) {
        let what = "the rules of HLSL for a shader that is not a source in HLSL";
        return Err(unsupported(what).located_at(SourcePosition::Module));
    }
    let by_language = options.by_language_rules.then(|| module.by_language_rules(options.hlsl)).flatten();
    Ok(by_language.unwrap_or(module))
}

/// Merges a case file into options; existing options win.
pub fn merge_options(mut first: AnalysisOptions, second: AnalysisOptions) -> AnalysisOptions {
    first.case_inputs = Some(Box::new(AnalysisOptions {
        buffers: second.buffers.keys().map(|place| (*place, InputBytes::default())).collect(),
        aliases: second.aliases.clone(),
        images: second.images.keys().map(|place| (*place, ImageInput::default())).collect(),
        samplers: second.samplers.clone(),
        specialization: second.specialization.clone(),
        push: second.push.clone(),
        ..AnalysisOptions::default()
    }));
    first.entry = first.entry.or(second.entry);
    first.grid = first.grid.or(second.grid);
    if first.workgroups.is_empty() {
        first.workgroups = second.workgroups;
    }
    first.subgroup_size = first.subgroup_size.or(second.subgroup_size);
    first.unroll = first.unroll.or(second.unroll);
    first.assertion = first.assertion.or(second.assertion);
    first.ray_queries = first.ray_queries.or(second.ray_queries);
    first.robustness = first.robustness.or(second.robustness);
    first.push = with_entries_of(second.push, first.push);
    first.specialization = with_entries_of(second.specialization, first.specialization);
    first.buffers = with_entries_of(second.buffers, first.buffers);
    first.aliases = with_entries_of(second.aliases, first.aliases);
    first.stage_inputs = with_entries_of(second.stage_inputs, first.stage_inputs);
    first.images = with_entries_of(second.images, first.images);
    first.buffer_elements = with_entries_of(second.buffer_elements, first.buffer_elements);
    first.image_elements = with_entries_of(second.image_elements, first.image_elements);
    first.samplers = with_entries_of(second.samplers, first.samplers);
    first.addresses.extend(second.addresses);
    first.conditions.extend(second.conditions);
    first
}

/// Returns a map with the entries of `winner` in addition, which replace others of the same key.
fn with_entries_of<M: IntoIterator + Extend<M::Item>>(mut map: M, winner: M) -> M {
    map.extend(winner);
    map
}
