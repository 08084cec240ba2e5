//! Fossilize archives (`.foz`): the shader modules of programs with the pipelines that use them.
//!
//! Format: `fossilize_db.cpp` and `fossilize.cpp` of Fossilize, versions 5 and 6. A header of 16 bytes precedes entries;
//! each has a kind and a hash as text, sizes, a checksum, and a payload, stored or compressed by zlib. The payload is
//! JSON; behind a zero byte follow the words of modules as variable-length integers.
//!
//! A scan reads the heads of entries and the pipelines, which give modules an entry point, specialization constants and
//! a subgroup size. Modules are read one at a time, so that memory does not grow with their size. An entry that is cut
//! off ends the scan; the entries before it are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read, Seek, SeekFrom};

use entry_point::AnalysisOptions;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde::Deserialize;

use crate::files::MAX_SHADER_BYTES;

/// The first bytes of an archive; the version follows.
const MAGIC: [u8; 15] = *b"\x81FOSSILIZEDB\0\0\0";
const VERSIONS: std::ops::RangeInclusive<u8> = 5..=6;
const HEADER_BYTES: u64 = 16;
/// Bytes of the name of an entry: its kind, and its hash in the last 16 of them, as hexadecimal digits.
const NAME_BYTES: usize = 40;
const ENTRY_HEAD_BYTES: usize = NAME_BYTES + 16;
/// The kinds of entries that are read.
const MODULE_KIND: u64 = 4;
const PIPELINE_KINDS: [u64; 3] = [6, 7, 9];
/// Values of the flags of an entry.
const STORED: u32 = 1;
const COMPRESSED: u32 = 2;
/// Bounds of a scan's memory.
const MAX_ENTRIES: usize = 1 << 20;
const MAX_PIPELINE_BYTES: u32 = 4 << 20;
const MAX_CONSTANTS: usize = 1 << 20;

/// A mistake in an archive, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {problem}")]
pub struct ArchiveError {
    pub offset: u64,
    pub problem: ArchiveProblem,
}

/// A mistake in an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveProblem {
    #[error("{0}")]
    Unreadable(String),
    #[error("no header of Fossilize; expected `FOSSILIZEDB` after the byte 0x81")]
    NoHeader,
    #[error("version {0} of the format; expected 5 or 6")]
    Version(u8),
    #[error(
        "an entry is cut off: {left} bytes left of {needed}; the {complete} entries before it are complete"
    )]
    CutOff { left: u64, needed: u64, complete: usize },
    #[error("an entry without a name; expected 40 hexadecimal digits")]
    Name,
    #[error("more than {0} {1}; split the archive")]
    TooMany(usize, &'static str),
    #[error("{0} bytes; expected at most {1}")]
    TooLarge(u64, u64),
    #[error("the flags {0}; expected 1 (stored) or 2 (compressed)")]
    Flags(u32),
    #[error("the checksum of the contents is {0:08x}; expected {1:08x}")]
    Checksum(u32, u32),
    #[error("the contents are not {0} bytes, stored or compressed by zlib")]
    Contents(u32),
    #[error("invalid JSON: {0}")]
    Json(String),
    #[error("the module {0:016x} is not in its entry")]
    NoModule(u64),
    #[error("the code is not {0} bytes of whole words, as variable-length integers or base64")]
    Code(u64),
    #[error("the pipeline {pipeline:016x} uses the module {module:016x}; expected it in the same archive")]
    MissingModule { pipeline: u64, module: u64 },
    #[error(
        "a specialization constant of {0} bytes at offset {1}; expected 1, 2, 4 or 8 bytes within the data"
    )]
    Constant(u64, u64),
    #[error("a subgroup size of {0}; expected a power of two up to 128")]
    SubgroupSize(u32),
}

impl ArchiveProblem {
    fn at(self, offset: u64) -> ArchiveError {
        ArchiveError { offset, problem: self }
    }
}

/// The place of a payload.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The offset of its payload.
    offset: u64,
    stored_bytes: u32,
    flags: u32,
    checksum: u32,
    bytes: u32,
}

/// A module with the settings of a pipeline that uses it.
#[derive(Clone, Debug)]
pub struct ArchiveMember {
    /// The hash of its module; with several members of one module, followed by a dot and the hash of the pipeline.
    pub name: String,
    /// The hash of the first pipeline with these settings; `None` if no pipeline uses the module.
    pub pipeline: Option<u64>,
    pub settings: StageSettings,
    /// The mistake that the member has instead of a module.
    error: Option<ArchiveError>,
}

/// A module as a stage of a pipeline specializes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageSettings {
    /// The hash of the module.
    pub module: u64,
    pub entry: Option<String>,
    /// Values of specialization constants by `SpecId`.
    pub constants: BTreeMap<u32, u64>,
    /// The subgroup size that the pipeline requires.
    pub subgroup_size: Option<u32>,
}

impl StageSettings {
    /// Returns the settings as inputs of a shader.
    pub fn to_options(&self) -> AnalysisOptions {
        AnalysisOptions {
            entry: self.entry.clone(),
            specialization: self.constants.iter().map(|(id, value)| (*id, *value)).collect(),
            subgroup_size: self.subgroup_size,
            ..AnalysisOptions::default()
        }
    }
}

/// The contents of an archive without its modules.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    modules: BTreeMap<u64, Entry>,
    pub members: Vec<ArchiveMember>,
    /// The number of complete entries of every kind.
    pub entries: usize,
    /// The mistake that ended the scan.
    pub damage: Option<ArchiveError>,
}

impl Archive {
    /// Reads the heads of the entries of an archive, and its pipelines.
    pub fn scan(source: &mut (impl Read + Seek)) -> Archive {
        let mut archive = Archive::default();
        let mut stages = StageList::default();
        archive.damage = archive.scan_entries(source, &mut stages).err();
        archive.collect_members(stages);
        archive
    }

    fn scan_entries(
        &mut self,
        source: &mut (impl Read + Seek),
        stages: &mut StageList,
    ) -> Result<(), ArchiveError> {
        let unreadable = |error: io::Error| ArchiveProblem::Unreadable(error.to_string()).at(0);
        let length = source.seek(SeekFrom::End(0)).map_err(unreadable)?;
        source.rewind().map_err(unreadable)?;
        let mut header = [0; HEADER_BYTES as usize];
        if length < HEADER_BYTES {
            return Err(ArchiveProblem::NoHeader.at(0));
        }
        source.read_exact(&mut header).map_err(unreadable)?;
        let [magic @ .., version] = header;
        if magic != MAGIC {
            return Err(ArchiveProblem::NoHeader.at(0));
        }
        if !VERSIONS.contains(&version) {
            return Err(ArchiveProblem::Version(version).at(HEADER_BYTES - 1));
        }
        let (mut at, mut seen_pipelines) = (HEADER_BYTES, BTreeSet::new());
        while at < length {
            let cut_off =
                |needed| ArchiveProblem::CutOff { left: length - at, needed, complete: self.entries }.at(at);
            if length - at < ENTRY_HEAD_BYTES as u64 {
                return Err(cut_off(ENTRY_HEAD_BYTES as u64));
            }
            if self.entries == MAX_ENTRIES {
                return Err(ArchiveProblem::TooMany(MAX_ENTRIES, "entries").at(at));
            }
            let unreadable = move |error: io::Error| ArchiveProblem::Unreadable(error.to_string()).at(at);
            let mut head = [0; ENTRY_HEAD_BYTES];
            source.read_exact(&mut head).map_err(unreadable)?;
            let (name, numbers) = head.split_at(NAME_BYTES);
            let digits = std::str::from_utf8(name)
                .ok()
                .filter(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let digits = digits.ok_or(ArchiveProblem::Name.at(at))?;
            let (kind, hash) = digits.split_at(NAME_BYTES - 16);
            // Other programs use the whole name as a hash, whose first half fits no kind.
            let kind = u64::from_str_radix(kind.trim_start_matches('0'), 16).unwrap_or(0);
            let hash = u64::from_str_radix(hash, 16).map_err(|_| ArchiveProblem::Name.at(at))?;
            let mut numbers = numbers.chunks_exact(4).map(read_word);
            let mut number = || numbers.next().unwrap_or_default();
            let (stored_bytes, flags, checksum, bytes) = (number(), number(), number(), number());
            let offset = at + ENTRY_HEAD_BYTES as u64;
            let entry = Entry { offset, stored_bytes, flags, checksum, bytes };
            if length - offset < stored_bytes.into() {
                return Err(cut_off(ENTRY_HEAD_BYTES as u64 + u64::from(stored_bytes)));
            }
            if PIPELINE_KINDS.contains(&kind) && seen_pipelines.insert(hash) {
                stages.add_pipelines(entry.read(source, MAX_PIPELINE_BYTES.into()), &entry, hash)?;
            } else if kind == MODULE_KIND {
                // As in Fossilize, the first of equal entries counts.
                self.modules.entry(hash).or_insert(entry);
            }
            at = offset + u64::from(stored_bytes);
            source.seek(SeekFrom::Start(at)).map_err(unreadable)?;
            self.entries += 1;
        }
        Ok(())
    }

    /// Creates a member for each module that no pipeline uses, and for each specialization of the others.
    fn collect_members(&mut self, stages: StageList) {
        let mut of_module: BTreeMap<u64, Vec<(StageSettings, u64, u64)>> = BTreeMap::new();
        for (settings, (pipeline, offset)) in stages.pipeline_of {
            of_module.entry(settings.module).or_default().push((settings, pipeline, offset));
        }
        let modules: BTreeSet<u64> = self.modules.keys().chain(of_module.keys()).copied().collect();
        for module in modules {
            let used = of_module.remove(&module).unwrap_or_default();
            let is_only = used.len() < 2;
            if used.is_empty() {
                let settings = StageSettings { module, ..StageSettings::default() };
                let name = format!("{module:016x}");
                self.members.push(ArchiveMember { name, pipeline: None, settings, error: None });
            }
            for (settings, pipeline, offset) in used {
                let suffix = if is_only { String::new() } else { format!(".{pipeline:016x}") };
                let error = ArchiveProblem::MissingModule { pipeline, module }.at(offset);
                self.members.push(ArchiveMember {
                    name: format!("{module:016x}{suffix}"),
                    pipeline: Some(pipeline),
                    error: Some(error).filter(|_| !self.modules.contains_key(&module)),
                    settings,
                });
            }
        }
        let broken = stages.broken.into_iter().map(|(pipeline, error)| ArchiveMember {
            name: format!("{pipeline:016x}"),
            pipeline: Some(pipeline),
            settings: StageSettings::default(),
            error: Some(error),
        });
        self.members.extend(broken);
        let mut counts: HashMap<String, u32> = HashMap::new();
        for member in &mut self.members {
            // A pipeline may specialize one module several times.
            let count = counts.entry(member.name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                member.name += &format!("-{count}");
            }
        }
    }

    /// Returns the members that a name selects: that of a member, of a module or of a pipeline.
    pub fn select<'a>(&'a self, name: &str) -> Vec<&'a ArchiveMember> {
        let hash = u64::from_str_radix(name, 16).ok();
        let is_selected = |member: &&ArchiveMember| {
            hash.map_or(member.name == name, |hash| {
                member.settings.module == hash || member.pipeline == Some(hash)
            })
        };
        self.members.iter().filter(is_selected).collect()
    }

    /// Reads the SPIR-V of a member.
    ///
    /// # Errors
    /// If its entry is damaged or larger than a shader may be.
    pub fn read_module(
        &self,
        source: &mut (impl Read + Seek),
        member: &ArchiveMember,
    ) -> Result<Vec<u8>, ArchiveError> {
        if let Some(error) = &member.error {
            return Err(error.clone());
        }
        let hash = member.settings.module;
        let entry = self.modules.get(&hash).ok_or(ArchiveProblem::NoModule(hash).at(0))?;
        let payload = entry.read(source, MAX_SHADER_BYTES)?;
        decode_module(&payload, hash).map_err(|problem| problem.at(entry.offset))
    }
}

fn read_word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

impl Entry {
    /// Reads the payload, of at most `limit` bytes.
    fn read(&self, source: &mut (impl Read + Seek), limit: u64) -> Result<Vec<u8>, ArchiveError> {
        self.read_payload(source, limit).map_err(|problem| problem.at(self.offset))
    }

    fn read_payload(&self, source: &mut (impl Read + Seek), limit: u64) -> Result<Vec<u8>, ArchiveProblem> {
        let largest = u64::from(self.bytes.max(self.stored_bytes));
        if largest > limit {
            return Err(ArchiveProblem::TooLarge(largest, limit));
        }
        let unreadable = |error: io::Error| ArchiveProblem::Unreadable(error.to_string());
        source.seek(SeekFrom::Start(self.offset)).map_err(unreadable)?;
        let mut stored = Vec::new();
        source.take(self.stored_bytes.into()).read_to_end(&mut stored).map_err(unreadable)?;
        let checksum = if self.checksum == 0 { 0 } else { crc32(&stored) };
        if checksum != self.checksum {
            return Err(ArchiveProblem::Checksum(checksum, self.checksum));
        }
        let contents = match self.flags {
            STORED => Some(stored),
            // The result grows with the input that produces it, up to the limit.
            COMPRESSED => decompress_to_vec_zlib_with_limit(&stored, self.bytes as usize).ok(),
            other => return Err(ArchiveProblem::Flags(other)),
        };
        let contents = contents.filter(|contents| contents.len() == self.bytes as usize);
        contents.ok_or(ArchiveProblem::Contents(self.bytes))
    }
}

/// Returns the CRC-32 of zlib.
fn crc32(bytes: &[u8]) -> u32 {
    let fold =
        |word: u32| (0..8).fold(word, |word, _| word >> 1 ^ if word & 1 == 1 { 0xedb8_8320 } else { 0 });
    !bytes.iter().fold(!0, |sum, byte| sum >> 8 ^ fold((sum ^ u32::from(*byte)) & 0xff))
}

/// The stages of pipelines, each with the first pipeline that has it and the offset of that.
#[derive(Default)]
struct StageList {
    pipeline_of: BTreeMap<StageSettings, (u64, u64)>,
    constants: usize,
    /// Malformed pipelines.
    broken: Vec<(u64, ArchiveError)>,
}

impl StageList {
    /// Adds the stages of the pipelines in a payload.
    ///
    /// # Errors
    /// If there are more than memory allows.
    fn add_pipelines(
        &mut self,
        payload: Result<Vec<u8>, ArchiveError>,
        entry: &Entry,
        hash: u64,
    ) -> Result<(), ArchiveError> {
        let document = payload.and_then(|payload| {
            parse_document(split_payload(&payload).0).map_err(|problem| problem.at(entry.offset))
        });
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                self.broken.push((hash, error));
                return Ok(());
            }
        };
        let one_stage = |(hash, pipeline): (String, ComputePipeline)| (hash, vec![pipeline.stage]);
        let compute = document.compute_pipelines.into_iter().map(one_stage);
        let others = document.graphics_pipelines.into_iter().chain(document.raytracing_pipelines);
        for (name, stages) in compute.chain(others.map(|(name, pipeline)| (name, pipeline.stages))) {
            let pipeline = u64::from_str_radix(&name, 16).unwrap_or(hash);
            for stage in stages {
                match stage.to_settings() {
                    // A pipeline that names its modules by identifiers has no hash of them.
                    Ok(settings) if settings.module == 0 => {}
                    Ok(settings) => {
                        self.constants += 1 + settings.constants.len();
                        self.pipeline_of.entry(settings).or_insert((pipeline, entry.offset));
                    }
                    Err(problem) => self.broken.push((pipeline, problem.at(entry.offset))),
                }
            }
        }
        if self.constants + self.broken.len() > MAX_CONSTANTS {
            return Err(ArchiveProblem::TooMany(MAX_CONSTANTS, "stages and constants").at(entry.offset));
        }
        Ok(())
    }
}

/// The JSON of an entry; other members are for replaying.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    shader_modules: BTreeMap<String, ModuleRecord>,
    compute_pipelines: BTreeMap<String, ComputePipeline>,
    graphics_pipelines: BTreeMap<String, StagedPipeline>,
    raytracing_pipelines: BTreeMap<String, StagedPipeline>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModuleRecord {
    code_size: u64,
    varint_offset: Option<u64>,
    varint_size: Option<u64>,
    code: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ComputePipeline {
    stage: StageRecord,
}

#[derive(Debug, Deserialize)]
struct StagedPipeline {
    #[serde(default)]
    stages: Vec<StageRecord>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StageRecord {
    module: String,
    name: Option<String>,
    specialization_info: Option<Specialization>,
    #[serde(default)]
    p_next: Vec<StageExtension>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StageExtension {
    required_subgroup_size: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Specialization {
    data: String,
    #[serde(default)]
    map_entries: Vec<MapEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MapEntry {
    #[serde(rename = "constantID")]
    constant_id: u32,
    offset: u64,
    size: u64,
}

impl StageRecord {
    fn to_settings(&self) -> Result<StageSettings, ArchiveProblem> {
        let invalid_hash =
            |error: std::num::ParseIntError| ArchiveProblem::Json(format!("`module`: {error}"));
        let module = u64::from_str_radix(&self.module, 16).map_err(invalid_hash)?;
        let subgroup_size = self.p_next.iter().find_map(|extension| extension.required_subgroup_size);
        if let Some(size) = subgroup_size.filter(|size| !size.is_power_of_two() || *size > 128) {
            return Err(ArchiveProblem::SubgroupSize(size));
        }
        let mut constants = BTreeMap::new();
        if let Some(given) = &self.specialization_info {
            let data = decode_base64(&given.data)
                .ok_or_else(|| ArchiveProblem::Json("`data`: not base64".to_owned()))?;
            for MapEntry { constant_id, offset, size } in &given.map_entries {
                let range = usize::try_from(*offset).ok().zip(usize::try_from(*size).ok());
                let bytes = range.and_then(|(start, size)| data.get(start..start.checked_add(size)?));
                let bytes = bytes.filter(|bytes| [1, 2, 4, 8].contains(&bytes.len()));
                let bytes = bytes.ok_or(ArchiveProblem::Constant(*size, *offset))?;
                let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
                constants.insert(*constant_id, value);
            }
        }
        Ok(StageSettings { module, entry: self.name.clone(), constants, subgroup_size })
    }
}

/// Splits a payload into JSON and the words of modules.
fn split_payload(payload: &[u8]) -> (&[u8], &[u8]) {
    let end = payload.iter().position(|byte| *byte == 0).unwrap_or(payload.len());
    (&payload[..end], payload.get(end + 1..).unwrap_or_default())
}

fn parse_document(json: &[u8]) -> Result<Document, ArchiveProblem> {
    serde_json::from_slice(json).map_err(|error| ArchiveProblem::Json(error.to_string()))
}

/// Returns the bytes of a module from the payload of its entry.
fn decode_module(payload: &[u8], hash: u64) -> Result<Vec<u8>, ArchiveProblem> {
    let (json, words) = split_payload(payload);
    let document = parse_document(json)?;
    let is_module = |(name, _): &(&String, &ModuleRecord)| u64::from_str_radix(name, 16) == Ok(hash);
    let found = document.shader_modules.iter().find(is_module);
    let (_, module) = found.ok_or(ArchiveProblem::NoModule(hash))?;
    let size = module.code_size;
    let decoded = match (module.varint_offset, module.varint_size, &module.code) {
        (Some(start), Some(length), _) => {
            let range = usize::try_from(start).ok().zip(usize::try_from(length).ok());
            let bytes = range.and_then(|(start, length)| words.get(start..start.checked_add(length)?));
            bytes.and_then(decode_varints)
        }
        (_, _, Some(code)) => decode_base64(code),
        _ => None,
    };
    let decoded = decoded.filter(|code| code.len() as u64 == size && size.is_multiple_of(4));
    decoded.ok_or(ArchiveProblem::Code(size))
}

/// Decodes 32-bit words, seven bits per byte, the lowest first.
fn decode_varints(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let (mut word, mut shift) = (0_u32, 0);
    for byte in bytes {
        if shift >= 32 {
            return None;
        }
        word |= u32::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            decoded.extend(word.to_le_bytes());
            (word, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(decoded)
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = word << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            decoded.push((word >> bits) as u8);
        }
    }
    text.len().is_multiple_of(4).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const ARCHIVE: &[u8] = include_bytes!("../../../cli/tests/all/shaders/pipelines.foz");

    type ReadModule = Result<Vec<u8>, ArchiveError>;

    /// Reads every module of an archive. Returns the names of the members and their code or error.
    fn read_all(bytes: &[u8]) -> (Vec<(String, ReadModule)>, Option<ArchiveError>) {
        let mut source = Cursor::new(bytes);
        let archive = Archive::scan(&mut source);
        let read = |member: &ArchiveMember| (member.name.clone(), archive.read_module(&mut source, member));
        (archive.members.iter().map(read).collect(), archive.damage.clone())
    }

    #[test]
    fn an_archive_that_is_cut_off_gives_the_entries_before_the_cut() {
        let (whole, damage) = read_all(ARCHIVE);
        assert!(damage.is_none() && whole.iter().all(|(_, code)| code.is_ok()), "{whole:?}");
        let heads = Archive::scan(&mut Cursor::new(ARCHIVE)).entries;
        let mut uncut = 0;
        for length in 0..ARCHIVE.len() {
            let (some, damage) = read_all(&ARCHIVE[..length]);
            uncut += usize::from(damage.is_none());
            let is_of_module =
                |error: &ArchiveError| matches!(error.problem, ArchiveProblem::MissingModule { .. });
            assert!(
                some.iter().all(|(_, code)| code.as_ref().err().is_none_or(is_of_module)),
                "{length}: {some:?}"
            );
            if let Some(damage) = damage {
                assert!(damage.offset <= length as u64, "{length}: {damage}");
            }
        }
        assert_eq!(uncut, heads, "only a cut between two entries is not detected");
    }

    #[test]
    fn changed_bytes_are_never_read_as_other_modules() {
        let (whole, _) = read_all(ARCHIVE);
        for at in 0..ARCHIVE.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = ARCHIVE.to_vec();
                bytes[at] ^= flip;
                for (name, code) in read_all(&bytes).0 {
                    let known = |code: &Vec<u8>| whole.iter().any(|(_, known)| known.as_ref() == Ok(code));
                    // Only the entry without a checksum may change unnoticed.
                    let is_checked = !name.starts_with("00000000000000c4");
                    assert!(!is_checked || code.as_ref().map_or(true, known), "{at} {flip}: {name}");
                }
            }
        }
    }
}
