//! Journals of the recording layer: one JSON object per line, one file per process.
//!
//! The format is private to one version of the program. Ids of buffers, images, memory, command lists, semaphores and fences are unique
//! in a process. A process that was killed may leave a last line without an end, which is ignored; after a failed write, the file `complete` is missing.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::hazard::{ByteRange, ResourceId};

/// The version of the format, which the layer writes into the first event.
const FORMAT_VERSION: u64 = 4;
/// The file of a process with its events.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// Pipeline stages and accesses of one scope of a barrier, as `VkPipelineStageFlags2` and `VkAccessFlags2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct SyncScope(pub u64, pub u64);

/// A wait for or a signal of a semaphore: its id, the stages, and the value (0 for binary semaphores).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SemaphoreUse(pub u64, pub u64, pub u64);

/// An event of the host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The program created an instance: the layer is loaded.
    Instance {
        /// Whether the creation succeeded.
        success: bool,
    },
    /// The program created a device.
    Device {
        /// Number of the device.
        device: u64,
        /// Name of the physical device.
        name: String,
        /// True if the program enabled `synchronization2`.
        has_synchronization2: bool,
    },
    /// The program obtained a queue.
    Queue {
        /// Id of the queue.
        queue: u64,
        /// Number of its device.
        device: u64,
        /// Queue family.
        family: u32,
        /// Index in the family.
        index: u32,
    },
    /// The program allocated device memory.
    Memory {
        /// Id of the memory.
        memory: u64,
        /// Size in bytes.
        size: u64,
        /// False if the host has to flush what it writes.
        is_coherent: bool,
    },
    /// The host flushes what it wrote to mapped memory.
    Flush {
        /// Id of the memory.
        memory: u64,
        /// The first byte, and the one after the last.
        range: ByteRange,
    },
    /// The program mapped memory.
    Map {
        /// Id of the memory.
        memory: u64,
        /// The first byte, and the one after the last.
        range: ByteRange,
    },
    /// The program ends the mapping of memory.
    Unmap {
        /// Id of the memory.
        memory: u64,
    },
    /// The host invalidates mapped memory, to read it.
    Invalidate {
        /// Id of the memory.
        memory: u64,
        /// The first byte, and the one after the last.
        range: ByteRange,
    },
    /// The host changed the layout of an image.
    HostLayout {
        /// Id of the image.
        image: u64,
        /// First level, levels, first layer, layers.
        range: [u32; 4],
        /// `VkImageAspectFlags`.
        aspects: u32,
        /// The `VkImageLayout` that it has now.
        layout: i32,
    },
    /// The program created a buffer.
    Buffer {
        /// Id of the buffer.
        buffer: u64,
        /// Size in bytes.
        size: u64,
        /// True if one queue family at a time owns it.
        is_exclusive: bool,
    },
    /// The program created an image.
    Image {
        /// Id of the image.
        image: u64,
        /// `VkFormat`.
        format: i32,
        /// Width, height, depth.
        size: [u32; 3],
        /// Mip levels.
        levels: u32,
        /// Array layers.
        layers: u32,
        /// `VkImageAspectFlags` that are accessed separately.
        aspects: u32,
        /// The `VkImageLayout` after its creation; -1 if another API may use it.
        layout: i32,
        /// True if one queue family at a time owns it.
        is_exclusive: bool,
    },
    /// The program bound a buffer or an image to memory.
    Bind {
        /// Id of the buffer.
        buffer: Option<u64>,
        /// Id of the image.
        image: Option<u64>,
        /// Id of the memory.
        memory: u64,
        /// Offset in the memory, in bytes.
        offset: u64,
        /// Bytes of an image.
        size: Option<u64>,
    },
    /// Bytes of mapped memory changed since the last call that submits or waits.
    HostWrites {
        /// Id of the memory.
        memory: u64,
        /// The first byte of each range, and the one after the last.
        ranges: Vec<(u64, u64)>,
    },
    /// Mapped memory that is too large to look for writes of the host.
    UncheckedMapping {
        /// Id of the memory.
        memory: u64,
        /// Size in bytes.
        size: u64,
    },
    /// The program, or else a shader, named an object.
    Name {
        /// Id of the object.
        object: u64,
        /// The name.
        name: String,
    },
    /// The first dispatch of a kind.
    Kind {
        /// Number of the kind in this process.
        kind: u64,
        /// Hash of module, entry point, constants, grid and layout of descriptors.
        hash: String,
        /// Hash of the module.
        module: String,
        /// Entry point.
        entry: String,
        /// The name that the program gave the pipeline, or else the module.
        name: Option<String>,
        /// Subgroup size.
        subgroup_size: u32,
    },
    /// The inputs of a dispatch were copied.
    Case {
        /// Number of the kind in this process.
        kind: u64,
        /// Number of the copy.
        case: u64,
        /// The written case with equal inputs; 0 for none.
        equal: u64,
        /// True if it is a case.
        is_written: bool,
        /// Hash of the text of the case.
        digest: String,
        /// False if the kind has enough cases. A wanted case that is not written did not fit on the disk.
        is_wanted: bool,
        /// The buffers that the memory of the case has addresses of.
        pointed: Vec<DispatchResource>,
    },
    /// The contents of a command buffer, before its first submission.
    Commands {
        /// Id of the list.
        commands: u64,
        /// The commands, those of secondary command buffers included.
        list: Vec<Command>,
        /// Late uses of sets that were updated after the command was recorded.
        updated: Vec<u64>,
    },
    /// A batch of a submission.
    Submit {
        /// Id of the queue.
        queue: u64,
        /// Waits before the commands.
        waits: Vec<SemaphoreUse>,
        /// Ids of command lists.
        commands: Vec<u64>,
        /// Signals after the commands.
        signals: Vec<SemaphoreUse>,
        /// Id of the signalled fence, or 0.
        fence: u64,
    },
    /// The host waited until a queue, or a device, had ended all work.
    Idle {
        /// Id of the queue.
        queue: Option<u64>,
        /// Number of the device.
        device: Option<u64>,
    },
    /// The host saw a signalled fence.
    Fence {
        /// Id of the fence.
        fence: u64,
    },
    /// The host saw a signalled event.
    HostEvent {
        /// Id of the event.
        event_id: u64,
    },
    /// The host signals an event.
    HostSetEvent {
        /// Id of the event.
        event_id: u64,
    },
    /// The host saw a value of a timeline semaphore.
    Semaphore {
        /// Id of the semaphore.
        semaphore: u64,
        /// The value.
        value: u64,
    },
    /// The host signals a timeline semaphore.
    HostSignal {
        /// Id of the semaphore.
        semaphore: u64,
        /// The value.
        value: u64,
    },
    /// The host saw that one of several fences or timeline semaphores is signalled.
    WaitAny {
        /// False for timeline semaphores.
        is_fences: bool,
        /// Their ids, each with the value of a semaphore.
        waits: Vec<[u64; 2]>,
    },
}

/// A command of a command buffer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Command {
    /// A dispatch.
    Dispatch {
        /// Number of its kind in this process.
        kind: u64,
        /// Workgroups; absent for indirect dispatches.
        grid: Option<[u32; 3]>,
        /// The buffer that has the grid of an indirect dispatch.
        indirect: Option<BufferRange>,
        /// Number of the case that has its inputs, if they were copied.
        case: Option<u64>,
        /// Hash of the push constants and the sizes of resources.
        variant: u64,
        /// The resources that its descriptors and addresses name.
        resources: Vec<DispatchResource>,
        /// Id of its use of sets that may be updated until it is submitted.
        late_use: Option<u64>,
        /// Inputs that the case lacks.
        missing: Vec<MissingInput>,
        /// Contents that the case lacks, of resources whose sizes it has.
        missing_contents: Vec<MissingInput>,
    },
    /// A transfer, a draw, the start of a render pass, or a presentation.
    #[serde(rename = "command")]
    Other(OtherCommand),
    /// A signal of an event.
    SetEvent {
        /// Id of the event.
        event: u64,
        /// The stages that the signal waits for.
        stages: u64,
    },
    /// A pipeline barrier, or a wait for events.
    Barrier(RecordedBarrier),
    /// Start of a labelled region.
    Label {
        /// The label.
        name: String,
    },
    /// End of a labelled region.
    EndLabel,
    /// Begin of a subpass, or end of a render pass.
    Subpass {
        /// Its number in the render pass; none for the end of a render pass.
        number: Option<u32>,
        /// True for a render pass without subpasses (`vkCmdBeginRendering`).
        is_dynamic: bool,
        /// The accesses to attachments that its draws may make.
        outputs: Vec<RecordedAccess>,
    },
}

/// The scopes of a barrier, and the resource that it is restricted to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RecordedBarrier {
    /// First scope.
    pub from: SyncScope,
    /// Second scope.
    pub to: SyncScope,
    /// Id of the buffer that it is restricted to.
    pub buffer: Option<u64>,
    /// First byte of the buffer.
    pub offset: Option<u64>,
    /// Bytes of the buffer; `u64::MAX` to its end.
    pub size: Option<u64>,
    /// Id of the image that it is restricted to.
    pub image: Option<u64>,
    /// First level, levels, first layer, layers; `u32::MAX` for the rest.
    pub range: Option<[u32; 4]>,
    /// `VkImageAspectFlags` of the image.
    #[serde(default)]
    pub aspects: u32,
    /// Queue families of an ownership transfer; equal if there is none.
    pub families: Option<[u32; 2]>,
    /// Old and new layout of an image.
    pub layouts: Option<[i32; 2]>,
    /// The subpasses of a dependency of a render pass, which orders layout transitions, too.
    pub subpasses: Option<SubpassDependency>,
    /// Ids of the events whose signals end the first scope.
    #[serde(default)]
    pub events: Vec<u64>,
}

impl RecordedBarrier {
    /// Returns the old and the new layout of a transition.
    pub fn transition(&self) -> Option<[i32; 2]> {
        self.layouts.filter(|[old, new]| old != new)
    }

    /// Returns the queue families of a transfer of ownership.
    pub fn transfer(&self) -> Option<[u32; 2]> {
        /// The queue family of a barrier without a transfer.
        const IGNORED: u32 = u32::MAX;
        self.families.filter(|families| families[0] != families[1] && !families.contains(&IGNORED))
    }
}

/// The commands outside of a render pass, as a subpass (`VK_SUBPASS_EXTERNAL`).
pub const EXTERNAL_SUBPASS: u32 = u32::MAX;

/// A dependency between two subpasses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct SubpassDependency {
    /// The number of the first subpass, or [`EXTERNAL_SUBPASS`].
    pub from: u32,
    /// The number of the second subpass, or [`EXTERNAL_SUBPASS`].
    pub to: u32,
    /// False for one that the render pass lacks and Vulkan adds.
    pub is_declared: bool,
}

/// The state of a pipeline that decides which attachments of the subpass its draws may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct DrawOutputs {
    /// Locations of the colours that it may write, one bit each.
    pub writes: u32,
    /// Those that it may read, to blend.
    pub reads: u32,
    /// True if it may test depth or stencil.
    pub has_tests: bool,
    /// True if the tests may write depth or stencil.
    pub writes_tests: bool,
    /// True if rasterization order orders reads of input attachments, too.
    pub is_ordered: bool,
}

impl DrawOutputs {
    /// Returns true if a draw may make an access to an attachment of its subpass.
    pub fn may_make(&self, access: &RecordedAccess) -> bool {
        match access.location {
            Some(location) => {
                let locations = if access.is_write { self.writes } else { self.reads };
                locations.checked_shr(location).is_some_and(|rest| rest & 1 != 0)
            }
            None => self.has_tests && (self.writes_tests || !access.is_write),
        }
    }
}

/// An input of a dispatch that is not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MissingInput {
    /// The input in words.
    pub what: String,
    /// Set and binding of its descriptor, if it has one.
    pub place: Option<(u32, u32)>,
}

/// Bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct BufferRange {
    /// Id of the buffer.
    pub buffer: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
}

/// A shader of a draw: its pipeline stage, the hash of its module, the entry point, and the constants as members of a TOML table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DrawShader(pub u64, pub String, pub String, pub String);

/// A command that is neither a dispatch nor a barrier.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OtherCommand {
    /// Its name.
    pub what: String,
    /// Its accesses.
    pub accesses: Vec<RecordedAccess>,
    /// The shaders of a draw, if all are recorded. They decide which possible accesses it has.
    pub shaders: Option<Vec<DrawShader>>,
    /// Vertices, from 0, and instances of a draw that executes and has no indices.
    pub vertices: Option<[u32; 2]>,
    /// The attachments that a draw may access; none if it is not one.
    pub outputs: Option<DrawOutputs>,
    /// Id of its use of sets that may be updated until it is submitted.
    pub late_use: Option<u64>,
    /// The reason why it may have other accesses, or may race with itself; none if all is known.
    pub unknown: Option<String>,
    /// True for a presentation, which a later signal of an acquired image orders.
    #[serde(default)]
    pub is_external: bool,
}

/// An access of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct RecordedAccess {
    /// Id of a buffer.
    pub buffer: Option<u64>,
    /// Id of an image.
    pub image: Option<u64>,
    /// First level, levels, first layer, layers of the image.
    pub range: Option<[u32; 4]>,
    /// `VkImageAspectFlags` of the image.
    #[serde(default)]
    pub aspects: u32,
    /// The `VkImageLayout` that the command expects.
    pub layout: Option<i32>,
    /// Set and binding of the descriptor through which a shader of a draw may make it.
    pub place: Option<(u32, u32)>,
    /// Location of the vertex attribute that the vertex shader of a draw may load, or of the fragment output.
    pub location: Option<u32>,
    /// True for a load or a store operation of an attachment.
    #[serde(default)]
    pub is_operation: bool,
    /// Bytes of the buffer, or texels of each level and layer.
    pub bytes: (u64, u64),
    /// One stage, as `VkPipelineStageFlagBits2`.
    pub stage: u64,
    /// One access, as `VkAccessFlagBits2`.
    pub access: u64,
    /// True for a write.
    #[serde(default)]
    pub is_write: bool,
    /// True for a superset of the accesses.
    #[serde(default)]
    pub is_possible: bool,
}

impl RecordedAccess {
    /// Returns the buffer or image.
    pub fn id(&self) -> Option<ResourceId> {
        self.buffer.map(ResourceId::Buffer).or(self.image.map(ResourceId::Image))
    }
}

/// A resource of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct DispatchResource {
    /// Descriptor set.
    pub set: Option<u32>,
    /// Binding.
    pub binding: Option<u32>,
    /// Element of an array of descriptors.
    pub element: Option<u32>,
    /// Offset of an address in the push constants, instead of set and binding.
    pub push: Option<u32>,
    /// Id of a buffer.
    pub buffer: Option<u64>,
    /// First byte of the buffer.
    #[serde(default)]
    pub offset: u64,
    /// Bytes of the buffer.
    #[serde(default)]
    pub size: u64,
    /// Bytes of a texel of a buffer view; 0 for an unknown format.
    pub texel_bytes: Option<u64>,
    /// The access of reads, as `VkAccessFlagBits2`.
    pub reads: u64,
    /// False if the descriptor permits reads alone.
    pub may_write: bool,
    /// Id of an image.
    pub image: Option<u64>,
    /// First level, levels, first layer, layers of the image.
    pub range: Option<[u32; 4]>,
    /// `VkImageAspectFlags` of the image.
    #[serde(default)]
    pub aspects: u32,
    /// True if addresses in memory name the buffer, not a descriptor.
    #[serde(default)]
    pub is_pointed: bool,
    /// The `VkImageLayout` that the descriptor names.
    pub layout: Option<i32>,
}

impl DispatchResource {
    /// Returns the name that a case gives what an address names.
    pub fn address_name(&self) -> Option<String> {
        let pointed = self.buffer.filter(|_| self.is_pointed).map(|buffer| format!("buffer{buffer}"));
        pointed.or(self.push.map(|push| format!("push{push}")))
    }

    /// Returns the buffer or image.
    pub fn id(&self) -> Option<ResourceId> {
        self.buffer.map(ResourceId::Buffer).or(self.image.map(ResourceId::Image))
    }
}

/// The journal of a process.
#[derive(Clone, Debug)]
pub struct ProcessJournal {
    /// The process.
    pub process: u32,
    /// Its folder.
    pub folder: PathBuf,
    /// The events, in order.
    pub events: Vec<Event>,
    /// True if events may be missing: the process was killed, or the disk was full.
    pub is_truncated: bool,
}

/// An error in the folder of journals.
#[derive(Debug, thiserror::Error)]
pub enum ReadJournalError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Another version of the layer wrote a journal.
    #[error(
        "{}: written by version {found} of the recording layer, and this vk-litmus reads version {FORMAT_VERSION}: judge it with the \
         vk-litmus that recorded it, or record the program again", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// A line is not an event of this version.
    #[error("{}:{line}: not an event of this version: {error}; record the program again", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error.
        error: serde_json::Error,
    },
}

/// The part of the first event of a journal that all versions share.
#[derive(Deserialize)]
struct FirstEvent {
    layer: u64,
}

/// Adds the sets that were updated after a command had been recorded to its missing inputs.
fn mark_updated_uses(event: &mut Event) {
    let Event::Commands { list, updated, .. } = event else { return };
    let what = "descriptors that were updated after the command had been recorded";
    for command in list {
        if let Command::Dispatch { late_use: Some(late_use), missing, .. } = command {
            if updated.contains(late_use) {
                missing.push(MissingInput { what: what.to_owned(), place: None });
            }
        } else if let Command::Other(draw) = command
            && draw.late_use.is_some_and(|late_use| updated.contains(&late_use))
        {
            (draw.unknown, draw.shaders) = (Some(format!("not recorded: {what}")), None);
        }
    }
}

/// Reads the journals of every process, by process number.
///
/// # Errors
/// If a file cannot be read, or has a line that is not an event.
pub fn read_journals(folder: &Path) -> Result<Vec<ProcessJournal>, ReadJournalError> {
    let io_error = |path: &Path, error| ReadJournalError::Io { path: path.to_owned(), error };
    let mut journals = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| io_error(folder, error))? {
        let folder = entry.map_err(|error| io_error(folder, error))?.path();
        let name = folder.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        let path = folder.join(JOURNAL_FILE);
        let (Some(process), true) = (name, path.exists()) else { continue };
        let bytes = std::fs::read(&path).map_err(|error| io_error(&path, error))?;
        let text = String::from_utf8_lossy(&bytes);
        let (whole, rest) = text.rsplit_once('\n').unwrap_or(("", &text));
        let first: Option<FirstEvent> = whole.lines().next().and_then(|line| serde_json::from_str(line).ok());
        if let Some(FirstEvent { layer: found }) = first.filter(|first| first.layer != FORMAT_VERSION) {
            return Err(ReadJournalError::Version { path, found });
        }
        let events = whole.lines().enumerate().map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| ReadJournalError::Line {
                path: path.clone(),
                line: index + 1,
                error,
            })
        });
        let mut events: Vec<Event> = events.collect::<Result<_, _>>()?;
        events.iter_mut().for_each(mark_updated_uses);
        let is_truncated = !rest.is_empty() || !folder.join("complete").exists();
        journals.push(ProcessJournal { process, folder, events, is_truncated });
    }
    journals.sort_by_key(|journal| journal.process);
    Ok(journals)
}
