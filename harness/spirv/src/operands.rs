//! Memory operands and image operands, which a mask selects.

use rspirv::spirv::{GroupOperation, ImageOperands, MemoryAccess, Op};

use crate::error::{SpirvProblem, malformed};

/// The memory operands of a load, store or copy, or of an access to a texel. Scopes are ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOperands {
    pub volatile: bool,
    pub non_private: bool,
    /// The scope of the availability operation of a write.
    pub available: Option<u32>,
    /// The scope of the visibility operation of a read.
    pub visible: Option<u32>,
    pub nontemporal: bool,
}

impl MemoryOperands {
    /// Encodes the operands of a load, store or copy; none if nothing is selected.
    pub fn to_words(self) -> Vec<u32> {
        let mut mask = MemoryAccess::NONE;
        mask.set(MemoryAccess::VOLATILE, self.volatile);
        mask.set(MemoryAccess::NONTEMPORAL, self.nontemporal);
        mask.set(MemoryAccess::NON_PRIVATE_POINTER, self.non_private);
        mask.set(MemoryAccess::MAKE_POINTER_AVAILABLE, self.available.is_some());
        mask.set(MemoryAccess::MAKE_POINTER_VISIBLE, self.visible.is_some());
        if mask.is_empty() {
            return Vec::new();
        }
        // The scopes follow in the order of their bits.
        [Some(mask.bits()), self.available, self.visible].into_iter().flatten().collect()
    }
}

/// The image operands of an image instruction. All are ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TexelOperands {
    /// All bits of the mask.
    pub mask: ImageOperands,
    pub lod: Option<u32>,
    /// `ConstOffset` or `Offset`.
    pub offset: Option<u32>,
    pub memory: MemoryOperands,
}

impl TexelOperands {
    /// Returns true if the mask has no bits but these, sign extension and memory operands.
    pub fn has_only(&self, others: ImageOperands) -> bool {
        let memory = ImageOperands::MAKE_TEXEL_AVAILABLE
            | ImageOperands::MAKE_TEXEL_VISIBLE
            | ImageOperands::NON_PRIVATE_TEXEL
            | ImageOperands::VOLATILE_TEXEL;
        let extended = ImageOperands::SIGN_EXTEND | ImageOperands::ZERO_EXTEND;
        (memory | extended | others).contains(self.mask)
    }
}

/// A cursor over the operands of an instruction.
pub(crate) struct OperandCursor<'m> {
    op: Op,
    words: &'m [u32],
    at: usize,
}

impl<'m> OperandCursor<'m> {
    pub fn new(op: Op, words: &'m [u32]) -> OperandCursor<'m> {
        OperandCursor { op, words, at: 0 }
    }

    pub fn next(&mut self) -> Result<u32, SpirvProblem> {
        self.next_optional().ok_or_else(|| malformed(format!("Op{:?} lacks operand {}", self.op, self.at)))
    }

    /// Returns the next operand, if there is one.
    pub fn next_optional(&mut self) -> Option<u32> {
        let word = self.words.get(self.at).copied();
        self.at += usize::from(word.is_some());
        word
    }

    /// Returns the remaining operands.
    pub fn rest(&mut self) -> &'m [u32] {
        let rest = self.words.get(self.at..).unwrap_or_default();
        self.at = self.words.len();
        rest
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.words.len()
    }

    /// Returns the next operand, which is a literal group operation.
    pub fn next_group_operation(&mut self) -> Result<GroupOperation, SpirvProblem> {
        let number = self.next()?;
        GroupOperation::from_u32(number)
            .ok_or_else(|| malformed(format!("Op{:?} with the group operation {number}", self.op)))
    }

    /// Returns the memory operands that come next; without a mask, all are absent.
    pub fn next_memory_operands(&mut self) -> Result<MemoryOperands, SpirvProblem> {
        let mask = MemoryAccess::from_bits_retain(self.next_optional().unwrap_or(0));
        if mask.contains(MemoryAccess::ALIGNED) {
            self.next()?;
        }
        let operands = MemoryOperands {
            volatile: mask.contains(MemoryAccess::VOLATILE),
            non_private: mask.contains(MemoryAccess::NON_PRIVATE_POINTER),
            available: self.next_if(mask.contains(MemoryAccess::MAKE_POINTER_AVAILABLE))?,
            visible: self.next_if(mask.contains(MemoryAccess::MAKE_POINTER_VISIBLE))?,
            nontemporal: mask.contains(MemoryAccess::NONTEMPORAL),
        };
        self.next_if(mask.contains(MemoryAccess::ALIAS_SCOPE_INTEL_MASK))?;
        self.next_if(mask.contains(MemoryAccess::NO_ALIAS_INTEL_MASK))?;
        Ok(operands)
    }

    /// Returns the image operands that come next; without a mask, all are absent.
    pub fn next_texel_operands(&mut self) -> Result<TexelOperands, SpirvProblem> {
        let mask = ImageOperands::from_bits_retain(self.next_optional().unwrap_or(0));
        let mut next = |flag: ImageOperands| self.next_if(mask.contains(flag));
        next(ImageOperands::BIAS)?;
        let lod = next(ImageOperands::LOD)?;
        // A gradient is two ids.
        next(ImageOperands::GRAD)?;
        next(ImageOperands::GRAD)?;
        let offset = next(ImageOperands::CONST_OFFSET)?;
        let offset = next(ImageOperands::OFFSET)?.or(offset);
        next(ImageOperands::CONST_OFFSETS)?;
        next(ImageOperands::SAMPLE)?;
        next(ImageOperands::MIN_LOD)?;
        let (available, visible) =
            (next(ImageOperands::MAKE_TEXEL_AVAILABLE)?, next(ImageOperands::MAKE_TEXEL_VISIBLE)?);
        let volatile = mask.contains(ImageOperands::VOLATILE_TEXEL);
        let non_private = mask.contains(ImageOperands::NON_PRIVATE_TEXEL);
        let nontemporal = mask.contains(ImageOperands::NONTEMPORAL);
        let memory = MemoryOperands { volatile, non_private, available, visible, nontemporal };
        Ok(TexelOperands { mask, lod, offset, memory })
    }

    fn next_if(&mut self, is_selected: bool) -> Result<Option<u32>, SpirvProblem> {
        if is_selected { self.next().map(Some) } else { Ok(None) }
    }
}
