//! Byte offsets to lines and columns.

/// Where each line of a text begins.
#[derive(Clone, Debug)]
pub struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    pub fn new(source: &str) -> Lines {
        let breaks = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = breaks.map_while(|(at, _)| u32::try_from(at + 1).ok());
        Lines { starts: std::iter::once(0).chain(starts).collect() }
    }

    /// Line and column of a byte, both counted from one; the column counts bytes.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        (line, (offset - start).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_one() {
        let lines = Lines::new("ab\ncd\r\n\ne");
        let at = |offset| lines.line_column(offset);
        assert_eq!([at(0), at(2)], [(1, 1), (1, 3)]);
        assert_eq!([at(3), at(5)], [(2, 1), (2, 3)]);
        assert_eq!([at(7), at(8), at(9)], [(3, 1), (4, 1), (4, 2)]);
    }
}
