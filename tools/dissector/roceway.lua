-- SPDX-License-Identifier: Apache-2.0
--
-- Wireshark dissector of Roceway's native carrier (docs/wire-format.md): datagram header, frames, control messages of the
-- engine, and the inner RoCEv2 packet, which Wireshark's own dissectors read. Put it into the folder that Help, About,
-- Folders calls "Personal Lua Plugins", or: tshark -X lua_script:roceway.lua -r FILE
--
-- UDP ports: by content (version, reserved fields, a known type), or those of the preference. The numbers below are
-- those of wan/wire/pkt.h and engine/msg.h; tests/component/dissector.py compares them.

local roceway = Proto("roceway", "Roceway WAN")

local frame_types = {
	[0x01] = "PING", [0x02] = "ACK", [0x03] = "ACK_ECN", [0x04] = "DELIVERED", [0x05] = "CREDIT",
	[0x07] = "ABORT", [0x08] = "RESET", [0x09] = "REBUILT", [0x0a] = "RATE", [0x10] = "DATA", [0x18] = "DGRAM",
	[0x1c] = "REPAIR", [0x1d] = "SHARED", [0x1e] = "RUN", [0x1f] = "BUNDLE",
}
-- DATA and DGRAM with their flag bits.
local frame_names = {}
for type, name in pairs(frame_types) do
	frame_names[type] = name
end
for type = 0x11, 0x17 do
	frame_names[type] = "DATA"
end
frame_names[0x1a] = "DGRAM"

local open_types = { [1] = "REQ", [2] = "RSP", [3] = "MGMT", [4] = "COPY", [5] = "PEER" }
local ctrl_types = { [1] = "SYNC", [2] = "REWIND", [3] = "FAIL", [4] = "RESUME", [5] = "MOVED" }
local peer_types = { [1] = "LOST", [2] = "SETTLED", [3] = "SERVING", [4] = "KNOWN" }
local ends = {
	[0] = "UNKNOWN", [1] = "REFUSED", [2] = "SILENT", [3] = "NOT_READY", [4] = "LOST", [5] = "ANSWER_LOST",
	[6] = "FORGOTTEN", [7] = "MALFORMED", [8] = "NO_MEMORY", [9] = "UNDELIVERED",
}
local kinds = { [0] = "packet", [1] = "control", [2] = "tenant packet", [3] = "order" }
local claims = { [0] = "none", [1] = "hold", [2] = "take", [3] = "keep" }
local datagram_types = { [0] = "frames", [1] = "HELLO" }

local HEADER, HELLO, REPAIR, OPEN_INFO, CONTROL = 20, 68, 11, 56, 20
local PEER = 8 -- and the open information of a flow, if it is about one
local SEALED, TAG = 16, 16
local DATA_OPEN, DATA_FRAG, DATA_AFTER = 1, 2, 4

local f = {
	version = ProtoField.uint8("roceway.version", "Version", base.DEC, nil, 0xf0),
	type = ProtoField.uint8("roceway.type", "Type", base.DEC, datagram_types, 0x0f),
	fec = ProtoField.bool("roceway.flags.fec", "Protected by repairs", 8, nil, 0x02),
	phase = ProtoField.uint8("roceway.flags.phase", "Key phase", base.DEC, nil, 0x01),
	path = ProtoField.uint8("roceway.path", "Path"),
	key_set = ProtoField.uint8("roceway.key_set", "Key set (0: in the clear)"),
	sealed = ProtoField.bytes("roceway.sealed", "Encrypted"),
	tag = ProtoField.bytes("roceway.tag", "Tag"),
	index = ProtoField.uint32("roceway.index", "Tunnel index", base.HEX),
	pn = ProtoField.uint64("roceway.pn", "Packet number"),
	crc = ProtoField.uint32("roceway.crc", "CRC-32", base.HEX),
	crc_ok = ProtoField.bool("roceway.crc.good", "CRC is right"),
	of_path = ProtoField.uint8("roceway.frame.path", "Of path"),
	frame = ProtoField.uint8("roceway.frame", "Frame", base.HEX, frame_names),
	ack_largest = ProtoField.uint64("roceway.ack.largest", "Largest packet number"),
	ack_delay = ProtoField.uint32("roceway.ack.delay", "Delay (us)"),
	ack_at = ProtoField.uint32("roceway.ack.at", "Arrival by the receiver's clock (us)"),
	ack_ranges = ProtoField.uint8("roceway.ack.ranges", "Ranges"),
	ack_range = ProtoField.string("roceway.ack.range", "Range"),
	ect0 = ProtoField.uint32("roceway.ack.ect0", "ECT(0)"),
	ect1 = ProtoField.uint32("roceway.ack.ect1", "ECT(1)"),
	ce = ProtoField.uint32("roceway.ack.ce", "CE"),
	count = ProtoField.uint8("roceway.count", "Entries"),
	flow = ProtoField.uint32("roceway.flow", "Flow", base.HEX),
	delivered = ProtoField.uint32("roceway.delivered", "Delivered buffers"),
	credit_buffers = ProtoField.uint32("roceway.credit.buffers", "Buffers a flow"),
	credit_bytes = ProtoField.uint64("roceway.credit.bytes", "Bytes of all flows"),
	rate_window = ProtoField.uint64("roceway.rate.window", "Window (bytes)"),
	rate_drain = ProtoField.uint64("roceway.rate.drain", "Far host takes (bytes/s)"),
	rebuilt_first = ProtoField.uint64("roceway.rebuilt.first", "First packet number"),
	rebuilt_more = ProtoField.uint8("roceway.rebuilt.more", "More"),
	data_open = ProtoField.bool("roceway.data.open", "Opens the flow", 8, nil, 0x01),
	data_frag = ProtoField.bool("roceway.data.frag", "Fragment", 8, nil, 0x02),
	data_wait = ProtoField.bool("roceway.data.wait", "Waits for another flow", 8, nil, 0x04),
	after_flow = ProtoField.uint32("roceway.after.flow", "After flow", base.HEX),
	after_count = ProtoField.uint32("roceway.after.count", "After so many of its buffers"),
	order_flow = ProtoField.uint32("roceway.order.flow", "Flow", base.HEX),
	order_count = ProtoField.uint32("roceway.order.count", "Buffers"),
	tagged = ProtoField.bool("roceway.tagged", "The host's frame had a VLAN tag", 8, nil, 0x80),
	pcp = ProtoField.uint8("roceway.pcp", "Its priority (PCP)", base.DEC, nil, 0x70),
	kind = ProtoField.uint8("roceway.kind", "Kind", base.DEC, kinds, 0x0f),
	seq = ProtoField.uint32("roceway.seq", "Sequence"),
	run_packets = ProtoField.uint8("roceway.run.packets", "Packets"),
	run_length = ProtoField.uint16("roceway.run.length", "Length of a packet"),
	bundle_packets = ProtoField.uint8("roceway.bundle.packets", "Packets"),
	bundle_length = ProtoField.uint16("roceway.bundle.length", "Length of a packet"),
	frag_id = ProtoField.uint32("roceway.frag.id", "Fragments of"),
	frag_total = ProtoField.uint16("roceway.frag.total", "Whole buffer (bytes)"),
	frag_size = ProtoField.uint16("roceway.frag.size", "Fragment size"),
	frag_index = ProtoField.uint8("roceway.frag.index", "Fragment index"),
	base_seq = ProtoField.uint64("roceway.open.base", "First sequence"),
	info_len = ProtoField.uint8("roceway.open.length", "Information length"),
	open_type = ProtoField.uint8("roceway.open.type", "Flow of", base.DEC, open_types),
	rnr_retry = ProtoField.uint8("roceway.open.rnr_retry", "RNR retry"),
	retry = ProtoField.uint8("roceway.open.retry", "Retry"),
	ack_timeout = ProtoField.uint8("roceway.open.ack_timeout", "ACK timeout + 1"),
	pmtu = ProtoField.uint16("roceway.open.pmtu", "Path MTU"),
	workers = ProtoField.uint8("roceway.open.workers", "Workers that steer by queue pair"),
	incarnation = ProtoField.uint32("roceway.incarnation", "Incarnation"),
	peer_qpn = ProtoField.uint32("roceway.open.peer_qpn", "Requester's QPN", base.HEX),
	src4 = ProtoField.ipv4("roceway.open.src", "Source"),
	dst4 = ProtoField.ipv4("roceway.open.dst", "Destination"),
	src6 = ProtoField.ipv6("roceway.open.src6", "Source"),
	dst6 = ProtoField.ipv6("roceway.open.dst6", "Destination"),
	qpn = ProtoField.uint32("roceway.qpn", "QPN", base.HEX),
	vni = ProtoField.uint32("roceway.vni", "VNI"),
	ctrl = ProtoField.uint8("roceway.control", "Control message", base.DEC, ctrl_types),
	peer = ProtoField.uint8("roceway.peer", "Message about a process", base.DEC, peer_types),
	syndrome = ProtoField.uint8("roceway.control.syndrome", "AETH syndrome", base.HEX),
	ended = ProtoField.uint8("roceway.control.end", "Reason", base.DEC, ends),
	worker = ProtoField.uint8("roceway.control.worker", "Worker that has the queue pair"),
	psn = ProtoField.uint32("roceway.psn", "PSN"),
	msn = ProtoField.uint32("roceway.msn", "MSN"),
	depth = ProtoField.uint8("roceway.repair.depth", "Depth"),
	k = ProtoField.uint8("roceway.repair.k", "Datagrams of the block (SHARED: blocks)"),
	m = ProtoField.uint8("roceway.repair.m", "Repairs (SHARED: turns)"),
	row = ProtoField.uint8("roceway.repair.index", "Row"),
	first = ProtoField.uint32("roceway.repair.first", "First packet number (low 32 bits)"),
	span = ProtoField.uint16("roceway.repair.span", "Span", base.DEC, nil, 0x7fff),
	gaps = ProtoField.bool("roceway.repair.gaps", "Others in the span", 16, nil, 0x8000),
	map = ProtoField.bytes("roceway.repair.map", "Map"),
	symbol = ProtoField.bytes("roceway.repair.symbol", "Repair symbol"),
	payload = ProtoField.bytes("roceway.payload", "Payload"),
	hello_want = ProtoField.bool("roceway.hello.want", "Answer wanted", 8, nil, 0x01),
	hello_fec = ProtoField.bool("roceway.hello.fec", "Takes REPAIR", 8, nil, 0x02),
	hello_pcp = ProtoField.bool("roceway.hello.pcp", "Reads priorities", 8, nil, 0x04),
	hello_order = ProtoField.bool("roceway.hello.order", "Follows order between flows", 8, nil, 0x08),
	hello_run = ProtoField.bool("roceway.hello.run", "Reads RUN", 8, nil, 0x01),
	hello_bundle = ProtoField.bool("roceway.hello.bundle", "Reads BUNDLE", 8, nil, 0x02),
	hello_claim = ProtoField.uint8("roceway.hello.claim", "Claim", base.DEC, claims, 0x30),
	hello_held = ProtoField.bool("roceway.hello.held", "Claim granted", 8, nil, 0x40),
	hello_gone = ProtoField.bool("roceway.hello.gone", "May not have the tunnel", 8, nil, 0x80),
	hello_inherit = ProtoField.bool("roceway.hello.inherit", "Asked to take over", 8, nil, 0x80),
	hello_claim_number = ProtoField.uint8("roceway.hello.claim_number", "Claim number", base.DEC, nil, 0x7f),
	mtu = ProtoField.uint16("roceway.hello.mtu", "MTU"),
	hello_index = ProtoField.uint32("roceway.hello.index", "Index to use", base.HEX),
	tunnel_id = ProtoField.uint64("roceway.hello.tunnel_id", "Tunnel id", base.HEX),
	epoch = ProtoField.uint64("roceway.hello.epoch", "Epoch", base.HEX),
	nonce = ProtoField.uint64("roceway.hello.nonce", "Nonce", base.HEX),
	echo = ProtoField.uint64("roceway.hello.echo", "Echo", base.HEX),
	echo_epoch = ProtoField.uint64("roceway.hello.echo_epoch", "Epoch of the nonce echoed", base.HEX),
	rx_window = ProtoField.uint32("roceway.hello.rx_window", "Buffers a flow"),
	hello_ack_delay = ProtoField.uint32("roceway.hello.ack_delay", "Longest ACK delay (us)"),
	rx_bytes = ProtoField.uint64("roceway.hello.rx_bytes", "Bytes of all flows"),
}
local fields = {}
for _, field in pairs(f) do
	fields[#fields + 1] = field
end
roceway.fields = fields

local bad_crc = ProtoExpert.new("roceway.crc.bad", "The CRC is wrong", expert.group.CHECKSUM, expert.severity.ERROR)
local bad_frame = ProtoExpert.new("roceway.frame.bad", "This is no frame", expert.group.MALFORMED, expert.severity.ERROR)
roceway.experts = { bad_crc, bad_frame }

roceway.prefs.ports = Pref.range("UDP ports", "", "Ports on which every datagram is Roceway's", 65535)
roceway.prefs.check_crc = Pref.bool("Check the CRC-32", false, "Slow in large captures")

local ip4, ip6 = Dissector.get("ip"), Dissector.get("ipv6")

-- CRC-32 (IEEE 802.3), by a table of bytes.
local crc_table = {}
for i = 0, 255 do
	local c = i
	for _ = 1, 8 do
		c = bit.band(c, 1) ~= 0 and bit.bxor(bit.rshift(c, 1), 0xedb88320) or bit.rshift(c, 1)
	end
	crc_table[i] = c
end

local function crc32(tvb)
	local bytes, c = tvb:bytes(), -1
	for i = 0, bytes:len() - 1 do
		local b = (i >= 16 and i < HEADER) and 0 or bytes:get_index(i)
		c = bit.bxor(bit.rshift(c, 8), crc_table[bit.band(bit.bxor(c, b), 0xff)])
	end
	return bit.bnot(c)
end

-- RFC 9000, section 16. Its value as a number, and its length; nil: the frame ends before it does.
local function varint(tvb, at)
	if at >= tvb:len() then
		return nil
	end
	local first = tvb(at, 1):uint()
	local len = bit.lshift(1, bit.rshift(first, 6))
	if at + len > tvb:len() then
		return nil
	end
	local v = bit.band(first, 0x3f)
	for i = 1, len - 1 do
		v = v * 256 + tvb(at + i, 1):uint()
	end
	return v, len
end

-- Readers of frames: (tvb, at, tree, state) -> offset behind the frame; nil: malformed. `at` is the type byte.
local read = {}

read[0x01] = function(_, at)
	return at + 1
end

local function ack(ecn)
	return function(tvb, at, tree, state)
		if at + 20 > tvb:len() then
			return nil
		end
		local largest, n = tvb(at + 2, 8):uint64(), tvb(at + 18, 1):uint()
		tree:add(f.of_path, tvb(at + 1, 1))
		tree:add(f.ack_largest, tvb(at + 2, 8))
		tree:add(f.ack_delay, tvb(at + 10, 4))
		tree:add(f.ack_at, tvb(at + 14, 4))
		tree:add(f.ack_ranges, tvb(at + 18, 1))
		local p, hi = at + 19, largest
		for i = 1, n do
			if i > 1 then
				local gap, gap_len = varint(tvb, p)
				if not gap then
					return nil
				end
				hi = hi - UInt64.new(gap % 4294967296, math.floor(gap / 4294967296)) - 1
				p = p + gap_len
			end
			local len, bytes = varint(tvb, p)
			if not len then
				return nil
			end
			local lo = hi - UInt64.new(len % 4294967296, math.floor(len / 4294967296))
			tree:add(f.ack_range, tvb(p, bytes), tostring(lo) .. "-" .. tostring(hi))
			hi = lo - 1
			p = p + bytes
		end
		if ecn then
			if p + 12 > tvb:len() then
				return nil
			end
			tree:add(f.ect0, tvb(p, 4))
			tree:add(f.ect1, tvb(p + 4, 4))
			tree:add(f.ce, tvb(p + 8, 4))
			p = p + 12
		end
		state.info[#state.info + 1] = "ACK " .. tostring(largest)
		return p
	end
end
read[0x02] = ack(false)
read[0x03] = ack(true)

-- A count byte and so many entries.
local function entries(head, size, add)
	return function(tvb, at, tree)
		if at + head > tvb:len() then
			return nil
		end
		local n = tvb(at + head - 1, 1):uint()
		tree:add(f.count, tvb(at + head - 1, 1))
		if at + head + n * size > tvb:len() then
			return nil
		end
		for i = 0, n - 1 do
			add(tvb, at + head + i * size, tree)
		end
		return at + head + n * size
	end
end

read[0x04] = entries(2, 8, function(tvb, p, tree)
	tree:add(f.flow, tvb(p, 4))
	tree:add(f.delivered, tvb(p + 4, 4))
end)
read[0x0a] = entries(2, 20, function(tvb, p, tree)
	tree:add(f.flow, tvb(p, 4))
	tree:add(f.rate_window, tvb(p + 4, 8))
	tree:add(f.rate_drain, tvb(p + 12, 8))
end)
local rebuilt = entries(3, 9, function(tvb, p, tree)
	tree:add(f.rebuilt_first, tvb(p, 8))
	tree:add(f.rebuilt_more, tvb(p + 8, 1))
end)
read[0x09] = function(tvb, at, tree)
	if at + 3 > tvb:len() then
		return nil
	end
	tree:add(f.of_path, tvb(at + 1, 1))
	return rebuilt(tvb, at, tree)
end

-- Fields one after the other.
local function fixed(list)
	return function(tvb, at, tree)
		local p = at + 1
		for _, item in ipairs(list) do
			if p + item[2] > tvb:len() then
				return nil
			end
			tree:add(item[1], tvb(p, item[2]))
			p = p + item[2]
		end
		return p
	end
end
read[0x05] = fixed({ { f.credit_buffers, 4 }, { f.credit_bytes, 8 } })
read[0x07] = fixed({ { f.flow, 4 } })
read[0x08] = fixed({ { f.flow, 4 } })

local function address(tvb, tree, field4, field6)
	if tvb(0, 8):uint64() == UInt64.new(0, 0) and tvb(8, 4):uint() == 0xffff then
		tree:add(field4, tvb(12, 4))
	else
		tree:add(field6, tvb)
	end
end

local function open_info(tvb, tree)
	if tvb:len() ~= OPEN_INFO then
		return
	end
	tree:add(f.open_type, tvb(0, 1))
	tree:add(f.rnr_retry, tvb(1, 1))
	tree:add(f.retry, tvb(2, 1))
	tree:add(f.ack_timeout, tvb(3, 1))
	tree:add(f.pmtu, tvb(4, 2))
	tree:add(f.workers, tvb(6, 1))
	tree:add(f.incarnation, tvb(8, 4))
	tree:add(f.peer_qpn, tvb(12, 4))
	address(tvb(16, 16), tree, f.src4, f.src6)
	address(tvb(32, 16), tree, f.dst4, f.dst6)
	tree:add(f.qpn, tvb(48, 4))
	tree:add(f.vni, tvb(52, 4))
end

local function peer(tvb, tree, state)
	tree:add(f.peer, tvb(0, 1))
	if tvb:len() > PEER then
		tree:add(f.psn, tvb(4, 4))
		open_info(tvb(PEER, OPEN_INFO), tree)
	end
	state.info[#state.info + 1] = peer_types[tvb(0, 1):uint()] or "peer"
end

local function control(tvb, tree, state)
	if tvb:len() == PEER or tvb:len() == PEER + OPEN_INFO then
		peer(tvb, tree, state)
		return
	end
	if tvb:len() < CONTROL then
		tree:add(f.payload, tvb)
		return
	end
	local type = tvb(0, 1):uint()
	tree:add(f.ctrl, tvb(0, 1))
	if type == 3 then
		tree:add(f.syndrome, tvb(1, 1))
		tree:add(f.ended, tvb(2, 1))
	elseif type == 5 then
		tree:add(f.worker, tvb(3, 1))
	end
	tree:add(f.incarnation, tvb(4, 4))
	tree:add(f.qpn, tvb(8, 4))
	tree:add(f.psn, tvb(12, 4))
	tree:add(f.msn, tvb(16, 4))
	state.info[#state.info + 1] = ctrl_types[type] or "control"
end

local function inner(tvb, tree, state)
	if tvb:len() == 0 then
		return
	end
	local version = bit.rshift(tvb(0, 1):uint(), 4)
	if version == 4 or version == 6 then
		state.inner[#state.inner + 1] = { tvb:tvb(), version == 4 and ip4 or ip6 }
	else
		tree:add(f.payload, tvb)
	end
end

local function payload(kind, fragment, tvb, tree, state)
	if fragment then
		tree:add(f.payload, tvb)
	elseif kind == 1 then
		control(tvb, tree, state)
	elseif kind == 2 and tvb:len() > 4 then
		tree:add(f.vni, tvb(0, 4))
		inner(tvb(4), tree, state)
	elseif kind == 3 then
		for at = 0, tvb:len() - 8, 8 do
			tree:add(f.order_flow, tvb(at, 4))
			tree:add(f.order_count, tvb(at + 4, 4))
		end
	else
		inner(tvb, tree, state)
	end
end

local function fragment_fields(tvb, p, tree)
	if p + 5 > tvb:len() then
		return nil
	end
	tree:add(f.frag_total, tvb(p, 2))
	tree:add(f.frag_size, tvb(p + 2, 2))
	tree:add(f.frag_index, tvb(p + 4, 1))
	return p + 5
end

local function kind_fields(byte, tree)
	tree:add(f.tagged, byte)
	tree:add(f.pcp, byte)
	tree:add(f.kind, byte)
end

local function data(tvb, at, tree, state)
	local flags = tvb(at, 1):uint()
	if at + 10 > tvb:len() then
		return nil
	end
	local kind, fragment = bit.band(tvb(at + 1, 1):uint(), 15), bit.band(flags, DATA_FRAG) ~= 0
	tree:add(f.data_open, tvb(at, 1))
	tree:add(f.data_frag, tvb(at, 1))
	tree:add(f.data_wait, tvb(at, 1))
	kind_fields(tvb(at + 1, 1), tree)
	tree:add(f.flow, tvb(at + 2, 4))
	tree:add(f.seq, tvb(at + 6, 4))
	state.info[#state.info + 1] = string.format("DATA flow 0x%x seq %d", tvb(at + 2, 4):uint(), tvb(at + 6, 4):uint())
	local p = at + 10
	if fragment then
		p = fragment_fields(tvb, p, tree)
		if not p then
			return nil
		end
	end
	if bit.band(flags, DATA_AFTER) ~= 0 then
		if p + 8 > tvb:len() then
			return nil
		end
		tree:add(f.after_flow, tvb(p, 4))
		tree:add(f.after_count, tvb(p + 4, 4))
		p = p + 8
	end
	if bit.band(flags, DATA_OPEN) ~= 0 then
		if p + 9 > tvb:len() or p + 9 + tvb(p + 8, 1):uint() > tvb:len() then
			return nil
		end
		local len = tvb(p + 8, 1):uint()
		tree:add(f.base_seq, tvb(p, 8))
		tree:add(f.info_len, tvb(p + 8, 1))
		if len > 0 then
			open_info(tvb(p + 9, len), tree)
		end
		p = p + 9 + len
	end
	if p < tvb:len() then
		payload(kind, fragment, tvb(p), tree, state)
	end
	return tvb:len()
end
for flags = 0, 7 do
	read[0x10 + flags] = data
end

-- The packets of a RUN or a BUNDLE. head() reads the `size` bytes in front of each: its kind and length.
local function packets_of(tvb, p, n, size, head, tree, state)
	for _ = 1, n do
		if p + size > tvb:len() then
			return nil
		end
		local kind, len = head(p)
		p = p + size
		if len == 0 or p + len > tvb:len() then
			return nil
		end
		payload(kind, false, tvb(p, len), tree, state)
		p = p + len
	end
	return n > 0 and p == tvb:len() and p or nil
end

local function run(tvb, at, tree, state)
	if at + 11 > tvb:len() then
		return nil
	end
	local kind, packets, seq = bit.band(tvb(at + 1, 1):uint(), 15), tvb(at + 10, 1):uint(), tvb(at + 6, 4):uint()
	kind_fields(tvb(at + 1, 1), tree)
	tree:add(f.flow, tvb(at + 2, 4))
	tree:add(f.seq, tvb(at + 6, 4))
	tree:add(f.run_packets, tvb(at + 10, 1))
	state.info[#state.info + 1] = string.format("RUN flow 0x%x seq %d to %d", tvb(at + 2, 4):uint(), seq, seq + packets - 1)
	return packets_of(tvb, at + 11, packets, 2, function(p)
		tree:add(f.run_length, tvb(p, 2))
		return kind, tvb(p, 2):uint()
	end, tree, state)
end
read[0x1e] = run

local function bundle(tvb, at, tree, state)
	local packets = tvb(at + 1, 1):uint()
	tree:add(f.bundle_packets, tvb(at + 1, 1))
	state.info[#state.info + 1] = string.format("BUNDLE of %d packets", packets)
	return packets_of(tvb, at + 2, packets, 11, function(p)
		kind_fields(tvb(p, 1), tree)
		tree:add(f.flow, tvb(p + 1, 4))
		tree:add(f.seq, tvb(p + 5, 4))
		tree:add(f.bundle_length, tvb(p + 9, 2))
		return bit.band(tvb(p, 1):uint(), 15), tvb(p + 9, 2):uint()
	end, tree, state)
end
read[0x1f] = bundle

local function dgram(tvb, at, tree, state)
	local fragment = bit.band(tvb(at, 1):uint(), DATA_FRAG) ~= 0
	if at + 2 > tvb:len() then
		return nil
	end
	tree:add(f.data_frag, tvb(at, 1))
	kind_fields(tvb(at + 1, 1), tree)
	state.info[#state.info + 1] = "DGRAM"
	local p = at + 2
	if fragment then
		if p + 4 > tvb:len() then
			return nil
		end
		tree:add(f.frag_id, tvb(p, 4))
		p = fragment_fields(tvb, p + 4, tree)
		if not p then
			return nil
		end
	end
	if p < tvb:len() then
		payload(bit.band(tvb(at + 1, 1):uint(), 15), fragment, tvb(p), tree, state)
	end
	return tvb:len()
end
read[0x18] = dgram
read[0x1a] = dgram

local function repair(shared)
	return function(tvb, at, tree, state)
		local head = REPAIR + (shared and 2 or 0)
		if at + head > tvb:len() then
			return nil
		end
		local map = tvb(at + 6, 1):uint()
		if at + head + map > tvb:len() then
			return nil
		end
		tree:add(f.of_path, tvb(at + 1, 1))
		tree:add(f.depth, tvb(at + 2, 1))
		tree:add(f.k, tvb(at + 3, 1))
		tree:add(f.m, tvb(at + 4, 1))
		tree:add(f.row, tvb(at + 5, 1))
		tree:add(f.first, tvb(at + 7, 4))
		if shared then
			tree:add(f.gaps, tvb(at + 11, 2))
			tree:add(f.span, tvb(at + 11, 2))
		end
		if map > 0 then
			tree:add(f.map, tvb(at + head, map))
		end
		if at + head + map < tvb:len() then
			tree:add(f.symbol, tvb(at + head + map))
		end
		state.info[#state.info + 1] = shared and "SHARED" or "REPAIR"
		return tvb:len()
	end
end
read[0x1c] = repair(false)
read[0x1d] = repair(true)

local function hello(tvb, tree)
	local list = {
		{ f.mtu, 2, 2 }, { f.hello_index, 4, 4 }, { f.tunnel_id, 8, 8 }, { f.epoch, 16, 8 }, { f.nonce, 24, 8 },
		{ f.echo, 32, 8 }, { f.echo_epoch, 40, 8 }, { f.rx_window, 48, 4 }, { f.hello_ack_delay, 52, 4 }, { f.rx_bytes, 56, 8 },
	}
	if tvb:len() < HELLO then
		return false
	end
	tree:add(f.hello_want, tvb(0, 1))
	tree:add(f.hello_fec, tvb(0, 1))
	tree:add(f.hello_pcp, tvb(0, 1))
	tree:add(f.hello_order, tvb(0, 1))
	tree:add(f.hello_claim, tvb(0, 1))
	tree:add(f.hello_held, tvb(0, 1))
	tree:add(f.hello_gone, tvb(0, 1))
	tree:add(f.hello_inherit, tvb(1, 1))
	tree:add(f.hello_claim_number, tvb(1, 1))
	for _, item in ipairs(list) do
		tree:add(item[1], tvb(item[2], item[3]))
	end
	if tvb:len() > HELLO then
		tree:add(f.hello_run, tvb(HELLO, 1))
		tree:add(f.hello_bundle, tvb(HELLO, 1))
	end
	return true
end

-- Frames whose reader writes into the info column.
local says_itself = { ACK = true, ACK_ECN = true, DATA = true, DGRAM = true, REPAIR = true, SHARED = true, RUN = true, BUNDLE = true }

local function frames(tvb, tree, state)
	local at = HEADER
	while at < tvb:len() do
		local type = tvb(at, 1):uint()
		local sub = tree:add(roceway, tvb(at), frame_names[type] or string.format("Frame 0x%02x", type))
		sub:add(f.frame, tvb(at, 1))
		local behind = read[type] and read[type](tvb, at, sub, state)
		if not behind then
			sub:add_proto_expert_info(bad_frame)
			return
		end
		if not says_itself[frame_names[type]] then
			state.info[#state.info + 1] = frame_names[type]
		end
		sub:set_len(behind - at)
		at = behind
	end
end

-- The rest of a sealed datagram. It stays closed: captures by a gateway are taken before encryption.
local function sealed(tvb, top)
	if tvb:len() < tvb:reported_len() or tvb:len() < HEADER + TAG then
		top:add(f.sealed, tvb(SEALED))
	else
		top:add(f.sealed, tvb(SEALED, tvb:len() - SEALED - TAG))
		top:add(f.tag, tvb(tvb:len() - TAG))
	end
end

function roceway.dissector(tvb, pinfo, tree)
	if tvb:len() < HEADER then
		return 0
	end
	local state = { info = {}, inner = {} }
	local top = tree:add(roceway, tvb())
	local type = bit.band(tvb(0, 1):uint(), 0x0f)
	pinfo.cols.protocol = "Roceway"
	top:add(f.version, tvb(0, 1))
	top:add(f.type, tvb(0, 1))
	top:add(f.fec, tvb(1, 1))
	top:add(f.phase, tvb(1, 1))
	top:add(f.path, tvb(2, 1))
	top:add(f.key_set, tvb(3, 1))
	top:add(f.index, tvb(4, 4))
	top:add(f.pn, tvb(8, 8))
	if tvb(3, 1):uint() ~= 0 then
		sealed(tvb, top)
		pinfo.cols.info = (type == 1 and "HELLO, count " or "pn ") .. tostring(tvb(8, 8):uint64()) .. ", sealed"
		return tvb:len()
	end
	local crc = top:add(f.crc, tvb(16, 4))
	if roceway.prefs.check_crc and tvb:len() == tvb:reported_len() then
		local good = bit.band(crc32(tvb()), -1) == bit.band(tvb(16, 4):int(), -1)
		top:add(f.crc_ok, tvb(16, 4), good):set_generated()
		if not good then
			crc:add_proto_expert_info(bad_crc)
		end
	end
	if type == 1 then
		local sub = top:add(roceway, tvb(HEADER), "HELLO")
		state.info[1] = "HELLO"
		if not hello(tvb(HEADER), sub) then
			sub:add_proto_expert_info(bad_frame)
		end
	else
		state.info[1] = "pn " .. tostring(tvb(8, 8):uint64())
		frames(tvb, top, state)
	end
	pinfo.cols.info = table.concat(state.info, ", ")
	-- Of a run or a bundle the info column shows the first packet.
	local text = tostring(pinfo.cols.info)
	for i, one in ipairs(state.inner) do
		pcall(function() one[2]:call(one[1], pinfo, tree) end) -- a malformed one does not hide the next
		pinfo.cols.protocol = "Roceway"
		text = i == 1 and text .. ": " .. tostring(pinfo.cols.info) or text
		pinfo.cols.info = text
	end
	return tvb:len()
end

-- Older gateways have no byte of more flags.
local function is_hello(len)
	return len == HEADER + HELLO or len == HEADER + HELLO + 1
end

-- What is inside is not to be seen: the length of a HELLO, or a tunnel index and a packet number that years of running reach.
local function looks_sealed(tvb)
	if tvb(0, 1):uint() == 0x21 then
		return is_hello(tvb:reported_len() - TAG) and tvb(4, 4):uint() == 0
	end
	return tvb:reported_len() > HEADER + TAG and tvb(4, 4):uint() ~= 0 and tvb(8, 2):uint() == 0
end

-- A datagram that can only be ours: version 2, a known type, no reserved bit; a first frame that exists.
local function looks_like_ours(tvb, pinfo, tree)
	if tvb:len() <= HEADER or bit.band(tvb(0, 1):uint(), 0xfe) ~= 0x20 or tvb(1, 1):uint() > 3 then
		return false
	end
	if tvb(2, 1):uint() > 15 or bit.band(tvb(8, 1):uint(), 0xc0) ~= 0 then
		return false
	end
	if tvb(3, 1):uint() ~= 0 then
		if not looks_sealed(tvb) then
			return false
		end
	elseif tvb(0, 1):uint() == 0x21 then
		if not is_hello(tvb:len()) or tvb(4, 4):uint() ~= 0 then
			return false
		end
	elseif not read[tvb(HEADER, 1):uint()] then
		return false
	end
	roceway.dissector(tvb, pinfo, tree)
	return true
end

roceway:register_heuristic("udp", looks_like_ours)

local udp_ports = DissectorTable.get("udp.port")
local ports_now = roceway.prefs.ports
function roceway.prefs_changed()
	if ports_now ~= "" then
		udp_ports:remove(ports_now, roceway)
	end
	ports_now = roceway.prefs.ports
	if ports_now ~= "" then
		udp_ports:add(ports_now, roceway)
	end
end
