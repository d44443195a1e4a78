//! Where everything goes when a file is written.
//!
//! Parts keep their order. As long as none has grown, each stays where it was, and so do the bytes between them, which
//! belong to nobody. Behind one that has grown the others follow as closely as they are aligned. Segments begin and end
//! with the sections they began and ended with.

use super::{File, HEADER_BYTES, SECTION_BYTES, SEGMENT_BYTES, kind};
use crate::Error;
use crate::bytes::Header;
use std::ops::Range;

/// What takes up room in a file, besides its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Section(usize),
    Sections,
    Segments,
}

/// Something that takes up room: where it was, and where it is to be.
#[derive(Clone, Debug)]
struct Part {
    content: Content,
    was: Range<usize>,
    is: Range<usize>,
}

impl File<'_> {
    /// The file as bytes. Without changes these are the bytes it was read from.
    pub fn write(&self) -> Vec<u8> {
        let parts = self.parts();
        let end = parts.last().map_or(HEADER_BYTES..HEADER_BYTES, |part| part.was.end..part.is.end);
        let tail = &self.bytes[end.start..];
        let mut out = Vec::with_capacity(end.end + tail.len());
        out.extend_from_slice(&self.bytes[..HEADER_BYTES]);
        let mut was = HEADER_BYTES;
        for part in &parts {
            // Bytes that belong to nobody stay where nothing has moved.
            if out.len() == was {
                out.extend_from_slice(&self.bytes[was..part.was.start]);
            } else {
                out.resize(part.is.start, 0);
            }
            self.write_content(part.content, &parts, &mut out);
            was = part.was.end;
        }
        out.extend_from_slice(tail);
        for part in &parts {
            let at = part.is.start as u64;
            match part.content {
                Content::Segments => put(&mut out, 32, at),
                Content::Sections => put(&mut out, 40, at),
                Content::Section(_) => {}
            }
        }
        out
    }

    /// Finds sections that share their bytes; anything else that overlaps is an error.
    pub(super) fn find_shared(&mut self) -> Result<(), Error> {
        let mut before = (Content::Sections, 0..HEADER_BYTES);
        for part in self.all_parts() {
            let (content, range) = before;
            match (content, part.content) {
                (Content::Section(one), Content::Section(other)) if range == part.was => {
                    self.sections[one].shared = true;
                    self.sections[other].shared = true;
                }
                _ if range.end <= part.was.start => {}
                _ => return Err(Error::Elf("its sections overlap".to_owned())),
            }
            before = (part.content, part.was);
        }
        match self.symbol_table.is_some_and(|table| self.sections[table].shared) {
            true => Err(Error::Elf("its symbols are something else too".to_owned())),
            false => Ok(()),
        }
    }

    /// All that takes up room, in the order of the file, where it was. What is shared is there once for each section.
    fn all_parts(&self) -> Vec<Part> {
        let header = &self.header;
        let tables = [
            (Content::Sections, header.sections_at, header.section_count * SECTION_BYTES),
            (Content::Segments, header.segments_at, header.segment_count * SEGMENT_BYTES),
        ];
        let sections = self.sections.iter().enumerate();
        let sections =
            sections.map(|(index, section)| (Content::Section(index), section.offset, section.length));
        let all = tables.into_iter().chain(sections).filter(|&(_, _, length)| length != 0);
        let mut parts: Vec<Part> = all
            .map(|(content, start, length)| Part { content, was: start..start + length, is: 0..0 })
            .collect();
        parts.sort_by_key(|part| (part.was.start, part.was.end));
        parts
    }

    /// All that takes up room, once, with the place where it is to be.
    fn parts(&self) -> Vec<Part> {
        let mut parts = self.all_parts();
        parts.dedup_by(|later, first| later.was == first.was);
        let (mut was, mut is) = (HEADER_BYTES, HEADER_BYTES);
        for part in &mut parts {
            let (alignment, length) = match part.content {
                Content::Section(index) => {
                    let section = &self.sections[index];
                    (section.alignment, section.data.len())
                }
                Content::Sections | Content::Segments => (8, part.was.len()),
            };
            let start = if is == was { part.was.start } else { is.next_multiple_of(alignment) };
            part.is = start..start + length;
            (was, is) = (part.was.end, part.is.end);
        }
        parts
    }

    fn write_content(&self, content: Content, parts: &[Part], out: &mut Vec<u8>) {
        match content {
            Content::Section(index) => out.extend_from_slice(&self.sections[index].data),
            Content::Sections => self.write_section_headers(parts, out),
            Content::Segments => {
                for segment in &self.segments {
                    out.extend_from_slice(&moved_segment(parts, segment));
                }
            }
        }
    }

    fn write_section_headers(&self, parts: &[Part], out: &mut Vec<u8>) {
        for section in &self.sections {
            let mut header = section.header.to_array();
            put(&mut header, 8, section.flags);
            // Section 0 says nothing, and what it says stays.
            if section.kind != kind::NONE {
                put(&mut header, 24, moved(parts, section.offset) as u64);
                put(&mut header, 32, section.size());
            }
            header[40..44].copy_from_slice(&section.link.to_le_bytes());
            header[44..48].copy_from_slice(&section.info.to_le_bytes());
            out.extend_from_slice(&header);
        }
    }
}

/// Where what began at `offset` is to begin.
fn moved(parts: &[Part], offset: usize) -> usize {
    let behind = parts.partition_point(|part| part.was.start <= offset);
    moved_with(&parts[..behind], parts.get(behind), offset)
}

/// Where what ended at `offset` is to end.
fn moved_end(parts: &[Part], offset: usize) -> usize {
    let behind = parts.partition_point(|part| part.was.start < offset);
    moved_with(&parts[..behind], parts.get(behind), offset)
}

/// Moves a place with the last of the parts `before` it, but not into the part behind it.
fn moved_with(before: &[Part], behind: Option<&Part>, offset: usize) -> usize {
    let Some(part) = before.last() else { return offset };
    let moved = match offset < part.was.end {
        true => part.is.start + (offset - part.was.start).min(part.is.len()),
        false => part.is.end.saturating_add(offset - part.was.end),
    };
    behind.map_or(moved, |behind| moved.min(behind.is.start))
}

fn moved_segment(parts: &[Part], segment: &Header<'_, SEGMENT_BYTES>) -> [u8; SEGMENT_BYTES] {
    let mut header = segment.to_array();
    let (length, memory) = (segment.u64(32), segment.u64(40));
    let was = usize::try_from(segment.u64(8)).expect("a segment lies in the file");
    let end = was + usize::try_from(length).expect("a segment lies in the file");
    let start = moved(parts, was);
    let grown = moved_end(parts, end).saturating_sub(start) as u64;
    put(&mut header, 8, start as u64);
    put(&mut header, 32, grown);
    put(&mut header, 40, memory.wrapping_sub(length).wrapping_add(grown));
    header
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
