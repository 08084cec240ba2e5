//! Decoding: the operands of an instruction by the grammar of the SPIR-V specification.
//!
//! Reading a module decodes each instruction of its functions once and refuses malformed operands. Consumers then
//! decode without errors.

use arithmetic::Instruction;
use rspirv::spirv::{GlslStd450Op, Op};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::atomic::{AtomicAccess, AtomicFunction, AtomicKind};
use crate::error::{SpirvError, SpirvProblem, malformed, unsupported};
use crate::module::{SpirvInstruction, SpirvModule};
use crate::opcode;
use crate::operands::OperandCursor;
use crate::operation::{
    BallotQuery, BarrierPart, CompositeOperation, ImageOperation, ImageQuery, ImageSampling, MatrixAccess,
    MatrixOperation, PointerComparison, RayQueryFunction, SpirvOperation, SubgroupFunction,
    SubgroupInstruction,
};

impl SpirvModule {
    /// Returns an instruction of the module with named operands.
    pub fn operation(&self, instruction: &SpirvInstruction) -> SpirvOperation<'_> {
        let op = instruction.op;
        // Reading has checked the operands.
        self.decode_operation(op, self.operands_of(instruction)).unwrap_or(SpirvOperation::Unknown { op })
    }

    /// Decodes the operands that follow the type and the result of an instruction.
    ///
    /// # Errors
    /// Fails if an operand is missing or is not an enumerant.
    pub fn decode_operation<'o>(
        &self,
        op: Op,
        operands: &'o [u32],
    ) -> Result<SpirvOperation<'o>, SpirvProblem> {
        SpirvOperation::decode(op, operands, &self.extended_sets)
    }

    /// Returns the refusal of an instruction of an unknown set, or with an unknown number.
    pub fn unknown_extended_instruction(&self, set: u32, number: u32) -> SpirvProblem {
        let set = self.extended_sets.get(&set).map_or("", String::as_str);
        unsupported(format!("instruction {number} of `{set}`"))
    }

    /// Checks the operands of all instructions of functions.
    ///
    /// # Errors
    /// Returns the first instruction whose operands do not fit.
    pub(crate) fn check_operands(&self) -> Result<(), SpirvError> {
        for instruction in self.functions.values().flat_map(|function| &function.code) {
            let decoded = self.decode_operation(instruction.op, self.operands_of(instruction));
            decoded.map_err(|problem| problem.located_at(instruction.place))?;
        }
        Ok(())
    }

    /// Checks that each function uses only ids that precede the use (SPIR-V, "Universal Validation Rules").
    ///
    /// Labels, called functions and the operands of `OpPhi` may follow.
    ///
    /// # Errors
    /// Returns the first use of an id that is not defined before it.
    pub(crate) fn check_definitions(&self) -> Result<(), SpirvError> {
        let declared: FxHashSet<u32> = self.declared_results().collect();
        let mut local = FxHashSet::default();
        for function in self.functions.values() {
            local.clear();
            local.extend(&function.parameters);
            for instruction in &function.code {
                let operands = self.operands_of(instruction);
                let bits = self.selector_bits(&function.types, instruction);
                let mut ids = match instruction.op {
                    Op::Phi | Op::Branch | Op::SelectionMerge | Op::LoopMerge => Vec::new(),
                    op => opcode::id_positions(op, operands, bits),
                };
                match instruction.op {
                    Op::BranchConditional | Op::Switch => ids.truncate(1),
                    Op::FunctionCall => _ = ids.drain(..ids.len().min(1)),
                    _ => {}
                }
                let ids = ids.into_iter().map(|at| operands[at]);
                let mut used = ids.chain(Some(instruction.ty).filter(|ty| *ty != 0));
                if let Some(id) = used.find(|id| !local.contains(id) && !declared.contains(id)) {
                    let name = self.display_name(id);
                    let what = format!("Op{:?} uses {name}, which is not defined before it", instruction.op);
                    return Err(malformed(what).located_at(instruction.place));
                }
                local.insert(instruction.result);
            }
        }
        Ok(())
    }
}

impl<'m> SpirvOperation<'m> {
    fn decode(
        op: Op,
        operands: &'m [u32],
        sets: &FxHashMap<u32, String>,
    ) -> Result<SpirvOperation<'m>, SpirvProblem> {
        let mut cursor = OperandCursor::new(op, operands);
        let mut next = || cursor.next();
        Ok(match op {
            Op::Nop | Op::AssumeTrueKHR | Op::LifetimeStart | Op::LifetimeStop => Self::Nop,
            Op::Label => Self::Label,
            Op::Phi => Self::Phi { sources: operands.as_chunks().0 },
            Op::SelectionMerge => Self::SelectionMerge { merge: next()? },
            Op::LoopMerge => Self::LoopMerge { merge: next()?, continue_target: next()? },
            Op::Branch => Self::Branch { target: next()? },
            Op::BranchConditional => {
                Self::BranchConditional { condition: next()?, yes: next()?, no: next()? }
            }
            Op::Switch => Self::Switch { selector: next()?, default: next()?, cases: cursor.rest() },
            Op::FunctionCall => Self::Call { function: next()?, arguments: cursor.rest() },
            Op::Return => Self::Return { value: None },
            Op::ReturnValue => Self::Return { value: Some(next()?) },
            Op::Kill | Op::TerminateInvocation => Self::Kill { demotes: false },
            Op::DemoteToHelperInvocation => Self::Kill { demotes: true },
            Op::Unreachable => Self::Unreachable,
            Op::EmitMeshTasksEXT => Self::EmitMeshTasks { groups: [next()?, next()?, next()?] },
            Op::SetMeshOutputsEXT => Self::SetMeshOutputs { counts: [next()?, next()?] },
            Op::Variable => {
                next()?;
                Self::Variable { initializer: cursor.next_optional() }
            }
            Op::Load => Self::Load { pointer: next()?, memory: cursor.next_memory_operands()? },
            Op::Store => {
                Self::Store { pointer: next()?, value: next()?, memory: cursor.next_memory_operands()? }
            }
            Op::CopyMemory => {
                let (target, source, first) = (next()?, next()?, cursor.next_memory_operands()?);
                // One mask is about both accesses.
                let second = if cursor.is_at_end() { first } else { cursor.next_memory_operands()? };
                Self::CopyMemory { target, source, memory: [first, second] }
            }
            Op::CopyMemorySized => Self::CopyMemorySized { target: next()?, source: next()? },
            Op::AccessChain | Op::InBoundsAccessChain => {
                Self::AccessChain { base: next()?, element: None, indices: cursor.rest() }
            }
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
                Self::AccessChain { base: next()?, element: Some(next()?), indices: cursor.rest() }
            }
            Op::ArrayLength => Self::ArrayLength { block: next()?, member: next()? },
            Op::PtrEqual | Op::PtrNotEqual | Op::PtrDiff => {
                let comparison = match op {
                    Op::PtrEqual => PointerComparison::Equal,
                    Op::PtrNotEqual => PointerComparison::NotEqual,
                    _ => PointerComparison::Difference,
                };
                Self::ComparePointers { comparison, left: next()?, right: next()? }
            }
            Op::Undef => Self::Undef,
            Op::CopyObject | Op::CopyLogical => Self::Copy { value: next()? },
            Op::Select => Self::Select { condition: next()?, yes: next()?, no: next()? },
            Op::Bitcast => Self::Bitcast { value: next()? },
            Op::ConvertUToPtr | Op::ConvertPtrToU => Self::ConvertPointer { value: next()? },
            Op::DPdx
            | Op::DPdy
            | Op::Fwidth
            | Op::DPdxFine
            | Op::DPdyFine
            | Op::FwidthFine
            | Op::DPdxCoarse
            | Op::DPdyCoarse
            | Op::FwidthCoarse => Self::Derivative { value: next()? },
            Op::ReadClockKHR => Self::ReadClock { scope: next()? },
            Op::IsHelperInvocationEXT => Self::IsHelperInvocation,
            Op::ExtInst => return Self::decode_extended(next()?, next()?, cursor, sets),
            op if is_computation(op) => {
                let count = arithmetic::count_value_operands(op, operands.len());
                Self::Compute { instruction: Instruction::Core(op), operands: &operands[..count] }
            }
            op => {
                for decode in [
                    decode_composite,
                    decode_image,
                    decode_atomic,
                    decode_barrier,
                    decode_group,
                    decode_matrix,
                    decode_ray_query,
                ] {
                    if let Some(operation) = decode(op, &mut cursor)? {
                        return Ok(operation);
                    }
                }
                Self::Unknown { op }
            }
        })
    }

    fn decode_extended(
        set: u32,
        number: u32,
        mut cursor: OperandCursor<'m>,
        sets: &FxHashMap<u32, String>,
    ) -> Result<SpirvOperation<'m>, SpirvProblem> {
        let name = sets.get(&set).map_or("", String::as_str);
        if name.starts_with("NonSemantic.") || name.ends_with("DebugInfo.100") {
            return Ok(Self::Nop);
        }
        Ok(match GlslStd450Op::from_u32(number).filter(|_| name == "GLSL.std.450") {
            Some(instruction @ (GlslStd450Op::Modf | GlslStd450Op::Frexp)) => {
                Self::ComputeAndStore { instruction, value: cursor.next()?, pointer: cursor.next()? }
            }
            Some(instruction) => {
                let instruction = Instruction::Extended(instruction);
                Self::Compute { instruction, operands: cursor.rest() }
            }
            None => Self::UnknownExtended { set, number },
        })
    }
}

/// Returns true for instructions that compute numbers from numbers, which `arithmetic` may lack.
fn is_computation(op: Op) -> bool {
    // OpTranspose, OpConvertFToU to OpQuantizeToF16, OpSNegate to OpSMulExtended, OpAny to OpLogicalNot, OpIEqual to
    // OpFUnordGreaterThanEqual, OpShiftRightLogical to OpBitCount, OpSDot to OpSUDotAccSat.
    matches!(op as u32, 84 | 109..=116 | 126..=152 | 154..=168 | 170..=191 | 194..=205 | 4450..=4455)
}

/// The operation of an instruction; `None` if it belongs to another family.
type FamilyResult<'m> = Result<Option<SpirvOperation<'m>>, SpirvProblem>;

fn decode_barrier<'m>(op: Op, cursor: &mut OperandCursor<'m>) -> FamilyResult<'m> {
    let mut next = || cursor.next();
    let part = match op {
        Op::MemoryBarrier => {
            return Ok(Some(SpirvOperation::MemoryBarrier { scope: next()?, semantics: next()? }));
        }
        Op::BeginInvocationInterlockEXT => return Ok(Some(SpirvOperation::BeginInterlock)),
        Op::EndInvocationInterlockEXT => return Ok(Some(SpirvOperation::EndInterlock)),
        Op::ControlBarrier => BarrierPart::Whole,
        Op::ControlBarrierArriveINTEL => BarrierPart::Arrive,
        Op::ControlBarrierWaitINTEL => BarrierPart::Wait,
        _ => return Ok(None),
    };
    let (execution, scope, semantics) = (next()?, next()?, next()?);
    Ok(Some(SpirvOperation::ControlBarrier { part, execution, scope, semantics }))
}

fn decode_composite<'m>(op: Op, cursor: &mut OperandCursor<'m>) -> FamilyResult<'m> {
    let mut next = || cursor.next();
    let operation = match op {
        Op::CompositeConstruct => CompositeOperation::Construct { parts: cursor.rest() },
        Op::CompositeExtract => CompositeOperation::Extract { composite: next()?, path: cursor.rest() },
        Op::CompositeInsert => {
            CompositeOperation::Insert { value: next()?, composite: next()?, path: cursor.rest() }
        }
        Op::VectorShuffle => {
            CompositeOperation::Shuffle { first: next()?, second: next()?, components: cursor.rest() }
        }
        Op::VectorExtractDynamic => CompositeOperation::ExtractDynamic { vector: next()?, index: next()? },
        Op::VectorInsertDynamic => {
            CompositeOperation::InsertDynamic { vector: next()?, component: next()?, index: next()? }
        }
        _ => return Ok(None),
    };
    Ok(Some(SpirvOperation::Composite(operation)))
}

fn decode_image<'m>(op: Op, cursor: &mut OperandCursor<'m>) -> FamilyResult<'m> {
    let mut next = || cursor.next();
    let operation = match op {
        Op::ImageRead => ImageOperation::Read {
            image: next()?,
            coordinate: next()?,
            operands: cursor.next_texel_operands()?,
        },
        Op::ImageFetch => ImageOperation::Fetch {
            image: next()?,
            coordinate: next()?,
            operands: cursor.next_texel_operands()?,
        },
        Op::ImageWrite => ImageOperation::Write {
            image: next()?,
            coordinate: next()?,
            texel: next()?,
            operands: cursor.next_texel_operands()?,
        },
        Op::ImageTexelPointer => ImageOperation::TexelPointer { image: next()?, coordinate: next()? },
        Op::ImageGather => ImageOperation::Sample {
            image: next()?,
            coordinate: next()?,
            sampling: ImageSampling::Gather { component: next()? },
            operands: cursor.next_texel_operands()?,
        },
        Op::ImageSampleExplicitLod | Op::ImageSampleImplicitLod => ImageOperation::Sample {
            sampling: match op {
                Op::ImageSampleExplicitLod => ImageSampling::ExplicitLod,
                _ => ImageSampling::Other,
            },
            image: next()?,
            coordinate: next()?,
            operands: cursor.next_texel_operands()?,
        },
        Op::ImageSampleDrefImplicitLod
        | Op::ImageSampleDrefExplicitLod
        | Op::ImageSampleProjImplicitLod
        | Op::ImageSampleProjExplicitLod
        | Op::ImageSampleProjDrefImplicitLod
        | Op::ImageSampleProjDrefExplicitLod
        | Op::ImageDrefGather
        | Op::ImageQueryLod => ImageOperation::Sample {
            sampling: ImageSampling::Other,
            image: next()?,
            coordinate: next()?,
            // Executors do not compute these, so that the operands that follow do not matter.
            operands: OperandCursor::new(op, &[]).next_texel_operands()?,
        },
        Op::ImageQuerySize => ImageOperation::Query { image: next()?, query: ImageQuery::Size },
        Op::ImageQuerySizeLod => {
            ImageOperation::Query { image: next()?, query: ImageQuery::SizeOfLevel { level: next()? } }
        }
        Op::ImageQueryLevels => ImageOperation::Query { image: next()?, query: ImageQuery::Levels },
        Op::ImageQuerySamples => ImageOperation::Query { image: next()?, query: ImageQuery::Samples },
        Op::Image => ImageOperation::ImageOf { sampled: next()? },
        Op::SampledImage => ImageOperation::Combine { image: next()?, sampler: next()? },
        _ => return Ok(None),
    };
    Ok(Some(SpirvOperation::Image(operation)))
}

fn decode_ray_query<'m>(op: Op, cursor: &mut OperandCursor<'m>) -> FamilyResult<'m> {
    let function = match op {
        Op::RayQueryInitializeKHR => RayQueryFunction::Initialize,
        Op::RayQueryTerminateKHR => RayQueryFunction::Terminate,
        Op::RayQueryGenerateIntersectionKHR => RayQueryFunction::GenerateIntersection,
        Op::RayQueryConfirmIntersectionKHR => RayQueryFunction::ConfirmIntersection,
        Op::RayQueryProceedKHR => RayQueryFunction::Proceed,
        Op::RayQueryGetIntersectionTypeKHR => {
            let query = cursor.next()?;
            let function = RayQueryFunction::IntersectionType { intersection: cursor.next()? };
            return Ok(Some(SpirvOperation::RayQuery { query, function }));
        }
        Op::RayQueryGetRayTMinKHR
        | Op::RayQueryGetRayFlagsKHR
        | Op::RayQueryGetIntersectionTKHR
        | Op::RayQueryGetIntersectionInstanceCustomIndexKHR
        | Op::RayQueryGetIntersectionInstanceIdKHR
        | Op::RayQueryGetIntersectionInstanceShaderBindingTableRecordOffsetKHR
        | Op::RayQueryGetIntersectionGeometryIndexKHR
        | Op::RayQueryGetIntersectionPrimitiveIndexKHR
        | Op::RayQueryGetIntersectionBarycentricsKHR
        | Op::RayQueryGetIntersectionFrontFaceKHR
        | Op::RayQueryGetIntersectionCandidateAABBOpaqueKHR
        | Op::RayQueryGetIntersectionObjectRayDirectionKHR
        | Op::RayQueryGetIntersectionObjectRayOriginKHR
        | Op::RayQueryGetWorldRayDirectionKHR
        | Op::RayQueryGetWorldRayOriginKHR
        | Op::RayQueryGetIntersectionObjectToWorldKHR
        | Op::RayQueryGetIntersectionWorldToObjectKHR
        | Op::RayQueryGetIntersectionTriangleVertexPositionsKHR => RayQueryFunction::Attribute,
        _ => return Ok(None),
    };
    Ok(Some(SpirvOperation::RayQuery { query: cursor.next()?, function }))
}

fn decode_matrix<'m>(op: Op, cursor: &mut OperandCursor<'m>) -> FamilyResult<'m> {
    let operation = match op {
        Op::CooperativeMatrixLoadKHR => {
            let pointer = cursor.next()?;
            MatrixOperation::Load(decode_matrix_access(pointer, cursor)?)
        }
        Op::CooperativeMatrixStoreKHR => {
            let (pointer, value) = (cursor.next()?, cursor.next()?);
            MatrixOperation::Store { value, access: decode_matrix_access(pointer, cursor)? }
        }
        Op::CooperativeMatrixMulAddKHR => MatrixOperation::MulAdd,
        _ => return Ok(None),
    };
    Ok(Some(SpirvOperation::CooperativeMatrix(operation)))
}

fn decode_atomic<'m>(op: Op, cursor: &mut OperandCursor<'m>) -> FamilyResult<'m> {
    let function = match op {
        Op::AtomicIIncrement => Some(AtomicFunction::Add),
        Op::AtomicIDecrement => Some(AtomicFunction::Subtract),
        Op::AtomicLoad | Op::AtomicStore | Op::AtomicExchange => None,
        Op::AtomicCompareExchange | Op::AtomicCompareExchangeWeak => None,
        _ => match AtomicFunction::from_op(op) {
            None => return Ok(None),
            function => function,
        },
    };
    let mut next = || cursor.next();
    let [pointer, scope, semantics] = [next()?, next()?, next()?];
    let kind = match (op, function) {
        (Op::AtomicLoad, _) => AtomicKind::Load,
        (Op::AtomicStore, _) => AtomicKind::Store { value: next()? },
        (Op::AtomicExchange, _) => AtomicKind::Exchange { value: next()? },
        (Op::AtomicIIncrement | Op::AtomicIDecrement, Some(function)) => {
            AtomicKind::Update { function, value: None }
        }
        (_, Some(function)) => AtomicKind::Update { function, value: Some(next()?) },
        (_, None) => AtomicKind::CompareExchange {
            unequal: next()?,
            value: next()?,
            comparator: next()?,
            is_weak: op == Op::AtomicCompareExchangeWeak,
        },
    };
    Ok(Some(SpirvOperation::Atomic(AtomicAccess { pointer, scope, semantics, kind })))
}

fn decode_group<'m>(op: Op, cursor: &mut OperandCursor<'m>) -> FamilyResult<'m> {
    if let Some(instruction) = reduced_instruction(op) {
        let (scope, operation, value) = (cursor.next()?, cursor.next_group_operation()?, cursor.next()?);
        return Ok(Some(SpirvOperation::Subgroup(SubgroupInstruction {
            function: SubgroupFunction::Reduce { instruction, operation },
            scope: Some(scope),
            value: Some(value),
            argument: cursor.next_optional(),
        })));
    }
    // The numbers of scopes, values and arguments.
    let (function, scopes, values, arguments) = match op {
        Op::GroupNonUniformElect => (SubgroupFunction::Elect, 1, 0, 0),
        Op::GroupNonUniformAll => (SubgroupFunction::All, 1, 1, 0),
        Op::GroupNonUniformAny => (SubgroupFunction::Any, 1, 1, 0),
        Op::GroupNonUniformAllEqual => (SubgroupFunction::AllEqual, 1, 1, 0),
        Op::GroupNonUniformBallot => (SubgroupFunction::Ballot, 1, 1, 0),
        Op::GroupNonUniformBroadcast => (SubgroupFunction::Broadcast, 1, 1, 1),
        Op::GroupNonUniformBroadcastFirst => (SubgroupFunction::BroadcastFirst, 1, 1, 0),
        Op::GroupNonUniformShuffle => (SubgroupFunction::Shuffle, 1, 1, 1),
        Op::GroupNonUniformShuffleXor => (SubgroupFunction::ShuffleXor, 1, 1, 1),
        Op::GroupNonUniformShuffleUp => (SubgroupFunction::ShuffleUp, 1, 1, 1),
        Op::GroupNonUniformShuffleDown => (SubgroupFunction::ShuffleDown, 1, 1, 1),
        Op::GroupNonUniformRotateKHR => (SubgroupFunction::Rotate { cluster: None }, 1, 1, 1),
        Op::GroupNonUniformQuadBroadcast => (SubgroupFunction::QuadBroadcast, 1, 1, 1),
        Op::GroupNonUniformQuadSwap => (SubgroupFunction::QuadSwap, 1, 1, 1),
        Op::GroupNonUniformQuadAllKHR => (SubgroupFunction::QuadAll, 0, 1, 0),
        Op::GroupNonUniformQuadAnyKHR => (SubgroupFunction::QuadAny, 0, 1, 0),
        Op::GroupNonUniformPartitionNV => (SubgroupFunction::Partition, 0, 1, 0),
        _ => return decode_ballot_query(op, cursor),
    };
    let mut operand = |count: u32| if count > 0 { cursor.next().map(Some) } else { Ok(None) };
    let (scope, value, argument) = (operand(scopes)?, operand(values)?, operand(arguments)?);
    let function = match function {
        SubgroupFunction::Rotate { .. } => SubgroupFunction::Rotate { cluster: cursor.next_optional() },
        function => function,
    };
    Ok(Some(SpirvOperation::Subgroup(SubgroupInstruction { function, scope, value, argument })))
}

fn decode_ballot_query<'m>(op: Op, cursor: &mut OperandCursor<'m>) -> FamilyResult<'m> {
    let mut next = || cursor.next();
    let (scope, query, ballot) = match op {
        Op::GroupNonUniformInverseBallot => (next()?, BallotQuery::Inverse, next()?),
        Op::GroupNonUniformBallotBitExtract => {
            let (scope, ballot) = (next()?, next()?);
            (scope, BallotQuery::BitExtract { index: next()? }, ballot)
        }
        Op::GroupNonUniformBallotBitCount => {
            let (scope, operation) = (next()?, cursor.next_group_operation()?);
            (scope, BallotQuery::BitCount { operation }, cursor.next()?)
        }
        Op::GroupNonUniformBallotFindLSB => (next()?, BallotQuery::FindLsb, next()?),
        Op::GroupNonUniformBallotFindMSB => (next()?, BallotQuery::FindMsb, next()?),
        _ => return Ok(None),
    };
    Ok(Some(SpirvOperation::BallotQuery { query, scope, ballot }))
}

/// Returns the binary instruction that a subgroup reduction repeats.
fn reduced_instruction(op: Op) -> Option<Instruction> {
    let (core, extended) = (Instruction::Core, Instruction::Extended);
    Some(match op {
        Op::GroupNonUniformIAdd => core(Op::IAdd),
        Op::GroupNonUniformIMul => core(Op::IMul),
        Op::GroupNonUniformFAdd => core(Op::FAdd),
        Op::GroupNonUniformFMul => core(Op::FMul),
        Op::GroupNonUniformSMin => extended(GlslStd450Op::SMin),
        Op::GroupNonUniformSMax => extended(GlslStd450Op::SMax),
        Op::GroupNonUniformUMin => extended(GlslStd450Op::UMin),
        Op::GroupNonUniformUMax => extended(GlslStd450Op::UMax),
        Op::GroupNonUniformFMin => extended(GlslStd450Op::FMin),
        Op::GroupNonUniformFMax => extended(GlslStd450Op::FMax),
        Op::GroupNonUniformLogicalAnd => core(Op::LogicalAnd),
        Op::GroupNonUniformLogicalOr => core(Op::LogicalOr),
        Op::GroupNonUniformLogicalXor => core(Op::LogicalNotEqual),
        Op::GroupNonUniformBitwiseAnd => core(Op::BitwiseAnd),
        Op::GroupNonUniformBitwiseOr => core(Op::BitwiseOr),
        Op::GroupNonUniformBitwiseXor => core(Op::BitwiseXor),
        _ => return None,
    })
}

fn decode_matrix_access(pointer: u32, cursor: &mut OperandCursor<'_>) -> Result<MatrixAccess, SpirvProblem> {
    let (layout, stride) = (cursor.next()?, cursor.next_optional());
    Ok(MatrixAccess { pointer, layout, stride, memory: cursor.next_memory_operands()? })
}
