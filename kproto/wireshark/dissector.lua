-- Dissects the Apache Kafka protocol by the tables above. Runs in Wireshark 3.6 and later (Lua 5.2 to 5.4).
--
-- `kproto schema wireshark` writes the tables: ERRORS (names of error codes), FILTERS (the type of each
-- filter name), HEADERS, EMBEDDED (messages in fields of bytes, by "JoinGroup Metadata"), and DIALECTS (messages by "request 3"). Kafka's own dissector stays available
-- through Decode As.

local proto = Proto("kproto", "Apache Kafka (kproto)")

local SIZE_BYTES = 4
local PRODUCE, CONTROLLED_SHUTDOWN, SASL_HANDSHAKE, API_VERSIONS = 0, 7, 17, 18
local UNSUPPORTED_VERSION = 35
local LARGEST_INT32 = 2147483647
local LARGEST_STRING = 32767
local NO_CODEC, GZIP = 0, 1
local CODECS = { [0] = "none", "gzip", "snappy", "lz4", "zstd" }

proto.prefs.ports = Pref.range("TCP ports", "9092", "Ports of brokers", 65535)
proto.prefs.tls_ports = Pref.range("TLS ports", "9093", "Ports of brokers behind TLS", 65535)
proto.prefs.largest = Pref.uint("Largest frame", 104857600, "In bytes; a larger size is not taken for a frame's")
local dialect_names, dialect_choices = {}, {}
for name in pairs(DIALECTS) do
  if name ~= "kafka" then dialect_names[#dialect_names + 1] = name end
end
table.sort(dialect_names)
table.insert(dialect_names, 1, "kafka")
for index, name in ipairs(dialect_names) do dialect_choices[index] = { index, name, index } end
proto.prefs.dialect = Pref.enum("Dialect", 1, "The released protocol, or a draft that overlays it", dialect_choices, false)

-- ---- fields ---------------------------------------------------------------------------------------------

local api_names = {}
for _, messages in pairs(DIALECTS) do
  for place, message in pairs(messages) do
    local key = place:match("^request (%d+)$")
    if key then api_names[tonumber(key)] = api_names[tonumber(key)] or message.name end
  end
end

local MAKERS = {
  bool = ProtoField.bool, int8 = ProtoField.int8, int16 = ProtoField.int16, uint16 = ProtoField.uint16,
  int32 = ProtoField.int32, uint32 = ProtoField.uint32, int64 = ProtoField.int64, float64 = ProtoField.double,
  string = ProtoField.string, bytes = ProtoField.bytes, records = ProtoField.bytes, uuid = ProtoField.string,
}
local fields = {}

-- One rule for every label: the words of the field's name in the schema, the first with a capital.
local function label_of(name)
  local words = name:gsub("(%l%d*)(%u)", "%1 %2"):gsub("(%u)(%u%l)", "%1 %2"):gsub("_", " "):lower()
  return words:sub(1, 1):upper() .. words:sub(2)
end

-- The name of a filter may end in a type, which is no part of the field's name.
local function title_of(filter, kind)
  local plain = filter:sub(1, -#kind - 2)
  if filter == plain .. "_" .. kind and FILTERS[plain] then return label_of(plain) end
  return label_of(filter)
end

local function make(filter, kind, title, values)
  if values then return MAKERS[kind]("kproto." .. filter, title, base.DEC, values) end
  return MAKERS[kind]("kproto." .. filter, title)
end

for filter, kind in pairs(FILTERS) do
  local values
  if kind == "int16" and filter:find("error_code$") then values = ERRORS end
  if filter == "request_api_key" then values = api_names end
  fields[filter] = make(filter, kind, title_of(filter, kind), values)
end

local own = {
  size = make("frame_size", "int32", "Size"),
  request_in = ProtoField.framenum("kproto.request_in", "Request in", base.NONE, frametype.REQUEST),
  response_in = ProtoField.framenum("kproto.response_in", "Response in", base.NONE, frametype.RESPONSE),
  time = ProtoField.relative_time("kproto.response_time", "Time since the request"),
  token = make("sasl_token", "bytes", "SASL token"),
  tag = make("unknown_tag", "bytes", "Unknown tagged field"),
  undecoded = make("undecoded", "bytes", "Not decoded"),
  base_offset = make("batch.base_offset", "int64", "Base offset"),
  batch_length = make("batch.length", "int32", "Length"),
  batch_epoch = make("batch.partition_leader_epoch", "int32", "Partition leader epoch"),
  magic = make("batch.magic", "int8", "Magic"),
  crc = ProtoField.uint32("kproto.batch.crc", "CRC", base.HEX),
  attributes = ProtoField.uint16("kproto.batch.attributes", "Attributes", base.HEX),
  codec = ProtoField.uint8("kproto.batch.compression", "Compression", base.DEC, CODECS),
  append_time = ProtoField.bool("kproto.batch.log_append_time", "Timestamps are those of the broker"),
  transactional = ProtoField.bool("kproto.batch.transactional", "Transactional"),
  control = ProtoField.bool("kproto.batch.control", "Control batch"),
  last_delta = make("batch.last_offset_delta", "int32", "Last offset delta"),
  base_timestamp = make("batch.base_timestamp", "int64", "Base timestamp"),
  max_timestamp = make("batch.max_timestamp", "int64", "Maximum timestamp"),
  producer_id = make("batch.producer_id", "int64", "Producer id"),
  producer_epoch = make("batch.producer_epoch", "int16", "Producer epoch"),
  base_sequence = make("batch.base_sequence", "int32", "Base sequence"),
  record_count = make("batch.record_count", "int32", "Records"),
  offset = make("record.offset", "int64", "Offset"),
  timestamp = make("record.timestamp", "int64", "Timestamp"),
  key = make("record.key", "bytes", "Key"),
  value = make("record.value", "bytes", "Value"),
  header_key = make("record.header_key", "string", "Header"),
  header_value = make("record.header_value", "bytes", "Header value"),
}
local registered = {}
for _, field in pairs(fields) do registered[#registered + 1] = field end
for _, field in pairs(own) do registered[#registered + 1] = field end
proto.fields = registered

local malformed = ProtoExpert.new("kproto.malformed", "Malformed frame", expert.group.MALFORMED, expert.severity.ERROR)
local cut = ProtoExpert.new("kproto.cut", "Packet size limited during capture", expert.group.UNDECODED, expert.severity.NOTE)
local unknown = ProtoExpert.new("kproto.unknown", "Not in the schemas", expert.group.UNDECODED, expert.severity.WARN)
local alone = ProtoExpert.new("kproto.no_request", "Response without its request", expert.group.SEQUENCE, expert.severity.NOTE)
local refused = ProtoExpert.new("kproto.error", "Error code", expert.group.RESPONSE_CODE, expert.severity.NOTE)
proto.experts = { malformed, cut, unknown, alone, refused }

local tcp_stream = Field.new("tcp.stream")

-- ---- reading --------------------------------------------------------------------------------------------
-- The frame that is read: its bytes, the offset of the next byte, and where the readable part ends.

local buf, pos, last
local path = {}
local first_error

local function fail(problem)
  error({ problem = problem, path = table.concat(path), at = pos }, 0)
end

local function need(count)
  if count > last - pos then fail(string.format("bytes needed: %d, left: %d", count, last - pos)) end
end

local function unsigned_varint()
  local value, scale = 0, 1
  for _ = 1, 5 do
    need(1)
    local byte = buf(pos, 1):uint()
    pos = pos + 1
    value = value + (byte % 128) * scale
    if byte < 128 then
      if value > 4294967295 then break end
      return value
    end
    scale = scale * 128
  end
  fail("unsigned varint is longer than 5 bytes or above 4294967295")
end

-- A signed varint of a record, up to ten bytes, as an Int64.
local function varlong()
  local value = UInt64.new(0)
  for shift = 0, 63, 7 do
    need(1)
    local byte = buf(pos, 1):uint()
    pos = pos + 1
    value = value:bor(UInt64.new(byte % 128):lshift(shift))
    if byte < 128 then
      local half = value:rshift(1)
      local signed = Int64.new(half:lower(), half:higher())
      if value:lower() % 2 == 1 then signed = -signed - 1 end
      return signed
    end
  end
  fail("varint is longer than 10 bytes")
end

local function varint()
  return varlong():tonumber()
end

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

-- A uuid as Kafka prints it: base64 for URLs, without padding.
local function base64(range)
  local bytes = range:bytes()
  local out = {}
  for at = 0, bytes:len() - 1, 3 do
    local first = bytes:get_index(at)
    local second = at + 1 < bytes:len() and bytes:get_index(at + 1)
    local third = at + 2 < bytes:len() and bytes:get_index(at + 2)
    local group = first * 65536 + (second or 0) * 256 + (third or 0)
    for place = 3, second and (third and 0 or 1) or 2, -1 do
      local index = math.floor(group / 64 ^ place) % 64 + 1
      out[#out + 1] = ALPHABET:sub(index, index)
    end
  end
  return table.concat(out)
end

local FIXED = { bool = 1, int8 = 1, int16 = 2, uint16 = 2, int32 = 4, uint32 = 4, int64 = 8, float64 = 8, uuid = 16 }
local PREFIX = { string = 2, bytes = 4, records = 4, array = 4 }

-- The length in front of a string, bytes, records or an array; nil is null.
local function length_of(kind, compact, nullable)
  local length
  if compact then
    length = unsigned_varint() - 1
  elseif PREFIX[kind] == 2 then
    need(2)
    length = buf(pos, 2):int()
    pos = pos + 2
  else
    need(4)
    length = buf(pos, 4):int()
    pos = pos + 4
  end
  if length > LARGEST_INT32 then fail(string.format("length %d is above %d", length, LARGEST_INT32)) end
  if length < -1 then fail(string.format("length %d is negative, and only -1 means null", length)) end
  if length == -1 then
    if not nullable then fail("null is not allowed here") end
    return nil
  end
  return length
end

local read_records

local is_cut = false -- whether a snap length cut the frame

-- Runs `read`; an error becomes a note in the tree and, unless it is one of ours, names the script's line.
local function guarded(tree, read)
  local whole, problem = pcall(read)
  if whole then return true end
  if type(problem) ~= "table" then
    problem = { problem = tostring(problem), path = table.concat(path), at = pos }
  end
  local place = problem.path:gsub("^%.", ""):gsub("%.%[", "[")
  tree:add_proto_expert_info(is_cut and cut or malformed, string.format("%s (%s, at byte %d)", problem.problem, place, problem.at))
  return false
end

-- Wireshark 4.0 replaces each invalid byte by three, and returns as many bytes as there were: the last character may be
-- cut, which would make its output invalid.
local function text_of(range)
  local text = range:string(ENC_UTF_8):gsub("[\192-\247][\128-\191]*$", function(tail)
    local lead = tail:byte()
    return #tail < (lead >= 240 and 4 or lead >= 224 and 3 or 2) and "" or tail
  end)
  return text
end

-- Each maker returns a function that reads one value into a tree and returns its text, for labels.

local function fixed_reader(kind, field)
  local size = FIXED[kind]
  if kind == "uuid" then
    return function(tree)
      need(16)
      local range = buf(pos, 16)
      local text = base64(range)
      tree:add(field, range, text)
      pos = pos + 16
      return text
    end
  end
  return function(tree)
    need(size)
    local range = buf(pos, size)
    tree:add(field, range)
    pos = pos + size
    if size <= 4 and kind ~= "bool" then return tostring(range:int()) end
  end
end

local function error_reader(field)
  return function(tree)
    need(2)
    local range = buf(pos, 2)
    local item = tree:add(field, range)
    pos = pos + 2
    local code = range:int()
    if code ~= 0 then
      local name = ERRORS[code] or tostring(code)
      item:add_proto_expert_info(refused, name)
      first_error = first_error or name
    end
  end
end

local read_embedded

local function blob_reader(kind, field, title, compact, nullable, embedded)
  return function(tree)
    local start = pos
    local length = length_of(kind, compact, nullable)
    if not length then
      tree:add(buf(start, pos - start), title .. ": null")
      return "null"
    end
    if kind == "string" and length > LARGEST_STRING then fail(string.format("string has length %d", length)) end
    need(length)
    local content = pos
    pos = pos + length
    local range = buf(start, pos - start)
    if kind == "string" then
      local text = length > 0 and text_of(buf(content, length)) or ""
      tree:add(field, range, text)
      return text
    end
    if kind == "records" then
      local inner = tree:add(range, string.format("%s: %d bytes", title, length))
      local frame, finish, outer, depth = buf, pos, last, #path
      guarded(inner, function() read_records(inner, content, finish) end)
      buf, pos, last = frame, finish, outer
      while #path > depth do path[#path] = nil end
      return
    end
    local item = tree:add(field, buf(content, length))
    if embedded and length >= 2 then read_embedded(item, embedded, content, content + length) end
  end
end

local struct_reader

local function element_reader(message, field, kind, version)
  if field.fields then return struct_reader(message, field, version) end
  local compact = message.flexible and version >= message.flexible[1] and version <= message.flexible[2]
  local proto_field = fields[field.filter]
  if FIXED[kind] then return fixed_reader(kind, proto_field) end
  return blob_reader(kind, proto_field, label_of(field.name), compact, false)
end

local function inside(range, version)
  return range ~= nil and version >= range[1] and version <= range[2]
end

local function array_reader(message, field, version, compact, nullable)
  local structs = field.fields ~= nil
  local read = element_reader(message, field, field.element, version)
  return function(tree)
    local start = pos
    local count = length_of("array", compact, nullable)
    if not count then
      tree:add(buf(start, pos - start), label_of(field.name) .. ": null")
      return
    end
    -- An element of no bytes would let a few bytes ask for two thousand million of them.
    if count > math.max(last - pos, 0) then
      fail(string.format("array of %d elements, but only %d bytes left", count, last - pos))
    end
    local inner = tree:add(buf(start, pos - start), string.format("%s: %d", label_of(field.name), count))
    for index = 0, count - 1 do
      path[#path + 1] = "[" .. index .. "]"
      if structs then
        local from = pos
        local item = inner:add(buf(from, 0), "[" .. index .. "]")
        local text = read(item)
        if text then item:append_text(" " .. text) end
        item:set_len(pos - from)
      else
        read(inner)
      end
      path[#path] = nil
    end
    inner:set_len(pos - start)
  end
end

local function nullable_struct_reader(read, tagged)
  local absent = tagged and 0 or -1
  return function(tree)
    local start = pos
    local marker
    if tagged then
      marker = unsigned_varint()
    else
      need(1)
      marker = buf(pos, 1):int()
      pos = pos + 1
    end
    if marker == absent then
      tree:add(buf(start, pos - start), "null")
      return
    end
    if marker ~= 1 then fail(string.format("presence marker %d is neither %d nor 1", marker, absent)) end
    return read(tree)
  end
end

local function value_reader(message, field, version, tagged)
  local flexible = field.flexible or message.flexible
  local compact = inside(flexible, version)
  local nullable = inside(field.nullable, version)
  if field.type == "array" then return array_reader(message, field, version, compact, nullable) end
  if field.type == "struct" then
    local read = struct_reader(message, field, version)
    if nullable then read = nullable_struct_reader(read, tagged) end
    return function(tree)
      local start = pos
      local inner = tree:add(buf(start, 0), label_of(field.name))
      read(inner)
      inner:set_len(pos - start)
    end
  end
  local proto_field = fields[field.filter]
  if field.type == "int16" and field.filter:find("error_code$") then return error_reader(proto_field) end
  if FIXED[field.type] then return fixed_reader(field.type, proto_field) end
  local embedded = EMBEDDED[message.name .. " " .. field.name]
  return blob_reader(field.type, proto_field, label_of(field.name), compact, nullable, embedded)
end

local function read_tagged_fields(tree, known)
  local count = unsigned_varint()
  if count * 2 > last - pos then fail(string.format("%d tagged fields, but only %d bytes left", count, last - pos)) end
  local previous = -1
  for _ = 1, count do
    local tag = unsigned_varint()
    if tag <= previous then fail(string.format("tag %d comes after tag %d", tag, previous)) end
    previous = tag
    local size = unsigned_varint()
    need(size)
    local reader = known[tag]
    if reader then
      path[#path + 1] = "." .. reader.name
      local outer, content = last, pos
      last = pos + size
      reader.read(tree)
      last = outer
      if pos - content ~= size then
        fail(string.format("tagged field has size %d, but its value took %d bytes", size, pos - content))
      end
      path[#path] = nil
    else
      tree:add(own.tag, buf(pos, size)):append_text(" (tag " .. tag .. ")")
      pos = pos + size
    end
  end
end

function struct_reader(message, struct, version)
  local inline, known = {}, {}
  local flexible = inside(message.flexible, version)
  for _, field in ipairs(struct.fields) do
    if inside(field.versions, version) then
      local tagged = field.tag ~= nil and inside(field.tagged, version)
      local reader = { name = field.name, read = value_reader(message, field, version, tagged) }
      if tagged then known[field.tag] = reader else inline[#inline + 1] = reader end
    end
  end
  return function(tree)
    local label
    for _, reader in ipairs(inline) do
      path[#path + 1] = "." .. reader.name
      local text = reader.read(tree)
      label = label or text
      path[#path] = nil
    end
    if flexible then read_tagged_fields(tree, known) end
    return label
  end
end

-- ---- records --------------------------------------------------------------------------------------------

local function bytes_or_null(tree, field, length, start, title)
  if length == -1 then
    tree:add(buf(start, pos - start), title .. ": null")
    return
  end
  if length < -1 then fail(string.format("length %d is negative, and only -1 means null", length)) end
  need(length)
  tree:add(field, buf(pos, length))
  pos = pos + length
end

local function read_record(tree, base_offset, base_timestamp)
  local from = pos
  local item = tree:add(buf(from, 0), "Record")
  local length = varint()
  if length < 0 then fail(string.format("record of %d bytes", length)) end
  need(length)
  local outer, stop = last, pos + length
  last = stop
  need(1)
  pos = pos + 1
  local start = pos
  local timestamp = base_timestamp + varlong()
  item:add(own.timestamp, buf(start, pos - start), timestamp)
  start = pos
  local offset = base_offset + varlong()
  item:add(own.offset, buf(start, pos - start), offset)
  start = pos
  bytes_or_null(item, own.key, varint(), start, "Key")
  start = pos
  bytes_or_null(item, own.value, varint(), start, "Value")
  local count = varint()
  if count < 0 or count > last - pos then fail(string.format("%d headers, but only %d bytes left", count, last - pos)) end
  for _ = 1, count do
    start = pos
    local size = varint()
    if size < 0 then fail("a header's key is null") end
    need(size)
    local text = size > 0 and text_of(buf(pos, size)) or ""
    pos = pos + size
    item:add(own.header_key, buf(start, pos - start), text)
    start = pos
    bytes_or_null(item, own.header_value, varint(), start, "Header value")
  end
  if pos ~= stop then fail(string.format("record has %d bytes after its headers", stop - pos)) end
  last = outer
  item:set_len(pos - from)
  item:append_text(" " .. tostring(offset))
end

-- The decompressed bytes as a range of their own, or nil where this Wireshark cannot decompress the codec.
local function decompressed(range, codec)
  local names = codec == GZIP and { "uncompress_zlib", "uncompress" } or { "uncompress_" .. (CODECS[codec] or "unknown") }
  for _, name in ipairs(names) do
    local known, result = pcall(function() return range[name](range, CODECS[codec] .. " records") end)
    if known and result then return result end
  end
end

-- Runs `read` over other bytes than the frame's, then returns to the frame.
local function within(range, read)
  local saved_buf, saved_pos, saved_last = buf, pos, last
  buf, pos, last = range:tvb(), 0, range:len()
  read()
  buf, pos, last = saved_buf, saved_pos, saved_last
end

local function read_batch(tree, stop)
  local start = pos
  local item = tree:add(buf(start, stop - start), "Record batch")
  item:add(own.base_offset, buf(start, 8))
  item:add(own.batch_length, buf(start + 8, 4))
  item:add(own.batch_epoch, buf(start + 12, 4))
  item:add(own.magic, buf(start + 16, 1))
  if stop - start < 61 then fail("batch is shorter than its header, 61 bytes") end
  item:add(own.crc, buf(start + 17, 4))
  local bits = buf(start + 21, 2):uint()
  local attributes = item:add(own.attributes, buf(start + 21, 2))
  local codec = bits % 8
  attributes:add(own.codec, buf(start + 22, 1), codec)
  attributes:add(own.append_time, buf(start + 22, 1), math.floor(bits / 8) % 2 == 1)
  attributes:add(own.transactional, buf(start + 22, 1), math.floor(bits / 16) % 2 == 1)
  attributes:add(own.control, buf(start + 22, 1), math.floor(bits / 32) % 2 == 1)
  item:add(own.last_delta, buf(start + 23, 4))
  item:add(own.base_timestamp, buf(start + 27, 8))
  item:add(own.max_timestamp, buf(start + 35, 8))
  item:add(own.producer_id, buf(start + 43, 8))
  item:add(own.producer_epoch, buf(start + 51, 2))
  item:add(own.base_sequence, buf(start + 53, 4))
  item:add(own.record_count, buf(start + 57, 4))
  local count = buf(start + 57, 4):int()
  local base_offset, base_timestamp = buf(start, 8):int64(), buf(start + 27, 8):int64()
  item:append_text(string.format(", offset %s, %d records", tostring(base_offset), count))
  pos = start + 61
  local function all()
    if count < 0 or count > last - pos then
      fail(string.format("%d records, but only %d bytes left", count, last - pos))
    end
    for _ = 1, count do read_record(item, base_offset, base_timestamp) end
  end
  if codec == NO_CODEC then
    local outer = last
    last = stop
    all()
    last = outer
  elseif pos < stop then
    local range = decompressed(buf(pos, stop - pos), codec)
    if range then
      within(range, all)
    else
      local compressed = item:add(own.undecoded, buf(pos, stop - pos))
      compressed:add_proto_expert_info(unknown, "this Wireshark does not decompress " .. (CODECS[codec] or "codec " .. codec))
    end
  end
  pos = stop
end

-- A message of magic 0 or 1, from its offset to its end.
local function read_message(tree, stop)
  local start = pos
  local item = tree:add(buf(start, stop - start), "Message")
  if stop - start < 26 then fail("message is shorter than 26 bytes") end
  item:add(own.offset, buf(start, 8))
  item:add(own.batch_length, buf(start + 8, 4))
  item:add(own.crc, buf(start + 12, 4))
  item:add(own.magic, buf(start + 16, 1))
  local magic = buf(start + 16, 1):int()
  local bits = buf(start + 17, 1):uint()
  local codec = bits % 8
  local attributes = item:add(own.attributes, buf(start + 17, 1))
  attributes:add(own.codec, buf(start + 17, 1), codec)
  item:append_text(" " .. tostring(buf(start, 8):int64()))
  pos = start + 18
  local outer = last
  last = stop
  if magic == 1 then
    need(8)
    item:add(own.timestamp, buf(pos, 8))
    pos = pos + 8
  end
  for _, each in ipairs({ { own.key, "Key" }, { own.value, "Value" } }) do
    local from = pos
    need(4)
    local length = buf(pos, 4):int()
    pos = pos + 4
    local content = pos
    bytes_or_null(item, each[1], length, from, each[2])
    if each[2] == "Value" and codec ~= NO_CODEC and length > 0 then
      local range = decompressed(buf(content, length), codec)
      if range then within(range, function() read_records(item, 0, last) end) end
    end
  end
  if pos ~= stop then fail(string.format("message has %d bytes after its value", stop - pos)) end
  last = outer
end

-- Batches up to `stop`; a broker may cut the last one short.
function read_records(tree, start, stop)
  pos = start
  local outer = last
  last = stop
  while pos < stop do
    local size = stop - pos >= 17 and buf(pos + 8, 4):int()
    if not size or size < 5 or size > stop - pos - 12 then
      tree:add(own.undecoded, buf(pos, stop - pos)):append_text(" (the beginning of a batch)")
      pos = stop
      break
    end
    local finish = pos + 12 + size
    path[#path + 1] = string.format(" batch at %d", pos)
    if buf(pos + 16, 1):int() >= 2 then read_batch(tree, finish) else read_message(tree, finish) end
    path[#path] = nil
  end
  last = outer
end

-- ---- messages -------------------------------------------------------------------------------------------

local readers = {}

local function message_of(direction, key)
  local place = direction .. " " .. key
  local draft = DIALECTS[dialect_names[proto.prefs.dialect]] or {}
  return draft[place] or DIALECTS.kafka[place]
end

local function body_reader(message, version)
  local versions = readers[message]
  if not versions then
    versions = {}
    readers[message] = versions
  end
  local reader = versions[version]
  if not reader then
    reader = struct_reader(message, message, version)
    versions[version] = reader
  end
  return reader
end

-- Stands for a tree that nobody sees.
local nowhere = {}
for _, name in ipairs({ "add", "append_text", "set_len", "set_generated", "add_proto_expert_info" }) do
  nowhere[name] = function() return nowhere end
end

-- Reads the message that consumers put between two places, if the bytes are one: other kinds of groups have
-- others there. Each version begins like the one before it, so a newer one is read as the newest that is known.
function read_embedded(tree, message, from, to)
  local version = buf(from, 2):int()
  if version < 0 or version > message.versions[2] + 3 then return end
  local outer, after, depth, shown = last, pos, #path, first_error
  local read = body_reader(message, math.min(version, message.versions[2]))
  local function whole(into)
    pos, last = from + 2, to
    read(into)
  end
  if pcall(whole, nowhere) and (pos == to or version > message.versions[2]) then
    local start = from + 2
    local inner = tree:add(buf(start, to - start), string.format("%s version %d", message.name, version))
    whole(inner)
  end
  pos, last, first_error = after, outer, shown
  while #path > depth do path[#path] = nil end
end

local function header_version(direction, key, version, message)
  if direction == "request" then
    if inside(message and message.flexible, version) then return 2 end
    return key == CONTROLLED_SHUTDOWN and version == 0 and 0 or 1
  end
  if key == API_VERSIONS then return 0 end
  return inside(message and message.flexible, version) and 1 or 0
end

local function read_rest(item, tree)
  if pos < last then
    tree:add(own.undecoded, buf(pos, last - pos)):add_proto_expert_info(
      malformed, string.format("%d bytes after the message", last - pos))
    pos = last
  end
end

-- ---- requests and their responses -----------------------------------------------------------------------
-- Filled in the first pass, in the order of the packets, and only read afterwards.

local streams, exchanges, learned

function proto.init()
  streams, exchanges, learned = {}, {}, {}
end

local function stream_number()
  local found = tcp_stream()
  return found and found.value or -1
end

local function state_of(stream)
  local found = streams[stream]
  if not found then
    found = { waiting = {}, tokens = false }
    streams[stream] = found
  end
  return found
end

local function remember_request(pinfo, stream, key, version, correlation)
  local name = "request " .. pinfo.number .. " " .. correlation
  if pinfo.visited then return exchanges[name] end
  local exchange = { key = key, version = version, request = pinfo.number, sent = pinfo.rel_ts }
  exchanges[name] = exchange
  local state = state_of(stream)
  local waiting = state.waiting[correlation] or {}
  waiting[#waiting + 1] = exchange
  state.waiting[correlation] = waiting
  state.tokens = key == SASL_HANDSHAKE and version == 0
  return exchange
end

local function exchange_of_response(pinfo, stream, correlation)
  local name = "response " .. pinfo.number .. " " .. correlation
  if pinfo.visited then return exchanges[name] end
  local waiting = state_of(stream).waiting[correlation]
  local exchange = waiting and table.remove(waiting, 1)
  if exchange then
    if #waiting == 0 then state_of(stream).waiting[correlation] = nil end
    exchange.response, exchange.answered = pinfo.number, pinfo.rel_ts
    exchanges[name] = exchange
  end
  return exchange
end

-- ---- frames ---------------------------------------------------------------------------------------------

-- Whether a frame can be a request: a known api key and a client id that fits.
local function looks_like_request(tvb)
  if tvb:len() < 12 then return false end
  local message = message_of("request", tvb(4, 2):int())
  local version = tvb(6, 2):int()
  if not message or version < 0 or version > message.versions[2] then return false end
  if tvb(4, 2):int() == CONTROLLED_SHUTDOWN and version == 0 then return true end
  if tvb:len() < 14 then return false end
  local length = tvb(12, 2):int()
  return length >= -1 and length <= math.min(tvb:reported_len() - 14, 1024)
end

local function begin(tvb)
  buf, pos, last, path, first_error = tvb, SIZE_BYTES, tvb:len(), {}, nil
  is_cut = tvb:len() < tvb:reported_len()
end

local function read_header(item, direction, version)
  local tree = item:add(buf(pos, 0), "Header")
  local start = pos
  body_reader(HEADERS[direction], version)(tree)
  tree:set_len(pos - start)
end

local function read_body(item, message, version)
  local tree = item:add(buf(pos, last - pos), string.format("%s version %d", message.name, version))
  body_reader(message, version)(tree)
  read_rest(item, tree)
end

local function unknown_message(item, message, key, version)
  local text = message and string.format("%s has versions %d to %d here, not %d", message.name, message.versions[1], message.versions[2], version)
    or string.format("api key %d is not in the schemas", key)
  local tree = pos < last and item:add(own.undecoded, buf(pos, last - pos)) or item
  tree:add_proto_expert_info(unknown, text)
end

local function title(name, version, direction)
  return string.format("%s v%d %s", name, version, direction)
end

local function dissect_token(tvb, item)
  item:add(own.size, tvb(0, 4))
  if tvb:len() > 4 then item:add(own.token, tvb(4)) end
  item:append_text(", SASL token")
  return "SASL token"
end

local function dissect_request(tvb, pinfo, item)
  local stream = stream_number()
  if state_of(stream).tokens and not looks_like_request(tvb) then return dissect_token(tvb, item) end
  begin(tvb)
  item:add(own.size, tvb(0, 4))
  local text
  guarded(item, function()
    need(8)
    local key, version, correlation = tvb(4, 2):int(), tvb(6, 2):int(), tvb(8, 4):int()
    local message = message_of("request", key)
    text = title(message and message.name or "Api key " .. key, version, "Request")
    item:append_text(", " .. text)
    local exchange = remember_request(pinfo, stream, key, version, correlation)
    read_header(item, "request", header_version("request", key, version, message))
    if exchange and exchange.response then item:add(own.response_in, exchange.response):set_generated() end
    if message and inside(message.versions, version) then
      read_body(item, message, version)
    else
      unknown_message(item, message, key, version)
    end
  end)
  return text or "Malformed request"
end

local function dissect_response(tvb, pinfo, item)
  begin(tvb)
  if tvb:len() < 8 then return dissect_token(tvb, item) end
  local stream = stream_number()
  local exchange = exchange_of_response(pinfo, stream, tvb(4, 4):int())
  if not exchange and state_of(stream).tokens then return dissect_token(tvb, item) end
  item:add(own.size, tvb(0, 4))
  if not exchange then
    guarded(item, function() read_header(item, "response", 0) end)
    if pos < last then item:add(own.undecoded, buf(pos, last - pos)) end
    item:add_proto_expert_info(alone, "no request with this correlation id was captured before it")
    item:append_text(", Response")
    return "Response without its request"
  end
  local key, version = exchange.key, exchange.version
  local message = message_of("response", key)
  -- KIP-511: a broker answers a version that it does not have in version 0.
  if key == API_VERSIONS and version > 0 and last >= 10 and tvb(8, 2):int() == UNSUPPORTED_VERSION then version = 0 end
  local text = title(message and message.name or "Api key " .. key, version, "Response")
  item:append_text(", " .. text)
  guarded(item, function()
    read_header(item, "response", header_version("response", key, version, message))
    item:add(own.request_in, exchange.request):set_generated()
    local elapsed = exchange.answered - exchange.sent
    local seconds = math.floor(elapsed)
    item:add(own.time, NSTime.new(seconds, math.floor((elapsed - seconds) * 1000000000 + 0.5))):set_generated()
    if message and inside(message.versions, version) then
      read_body(item, message, version)
    else
      unknown_message(item, message, key, version)
    end
  end)
  return first_error and text .. " " .. first_error or text
end

local function dissect_frame(tvb, pinfo, tree)
  pinfo.cols.protocol = "Kafka"
  if tvb:len() < SIZE_BYTES then
    tree:add_proto_expert_info(cut, "the frame is cut within its size")
    return tvb:len()
  end
  local stream = stream_number()
  local server = learned[stream]
  local to_server
  if server then to_server = pinfo.dst_port == server else to_server = pinfo.match_uint == pinfo.dst_port end
  local item = tree:add(proto, tvb())
  local dissect = to_server and dissect_request or dissect_response
  local text = dissect(tvb, pinfo, item)
  local shown = tostring(pinfo.cols.info)
  if pinfo.private.kproto_frame == tostring(pinfo.number) then
    pinfo.cols.info:append(" | " .. text)
  else
    pinfo.cols.info = text
  end
  pinfo.private.kproto_frame = tostring(pinfo.number)
  return tvb:len()
end

-- A size that cannot be a frame's makes one piece of what is there: the capture began within a frame.
local function frame_length(tvb, _, offset)
  if tvb:len() - offset < SIZE_BYTES then return tvb:reported_len() - offset end
  local size = tvb(offset, 4):int()
  if size < 0 or size > proto.prefs.largest then return tvb:reported_len() - offset end
  return SIZE_BYTES + size
end

function proto.dissector(tvb, pinfo, tree)
  local whole, problem = pcall(dissect_tcp_pdus, tvb, tree, SIZE_BYTES, frame_length, dissect_frame, true)
  if not whole then
    -- It fails if a snap length cut the packet between two frames.
    if tvb:len() == tvb:reported_len() then error(problem, 0) end
    tree:add_proto_expert_info(cut, "frames are behind the end of the captured bytes")
  end
  return tvb:len()
end

-- ---- where it applies -----------------------------------------------------------------------------------

-- Whether the header and the body of a request that is there as a whole can be read. Some clients, which have a
-- client id, leave bytes behind a message.
local function is_readable(tvb, size)
  local key, version = tvb(4, 2):int(), tvb(6, 2):int()
  local message = message_of("request", key)
  if not inside(message.versions, version) then return true end
  begin(tvb)
  last = SIZE_BYTES + size
  local whole = pcall(function()
    body_reader(HEADERS.request, header_version("request", key, version, message))(nowhere)
    body_reader(message, version)(nowhere)
  end)
  if not whole or pos == last then return whole end
  local length = tvb(12, 2):int()
  return length > 0 and tvb(14, length):string():find("^[%g ]+$") ~= nil
end

local function begins_with_request(tvb)
  if tvb:len() < 14 then return false end
  local size = tvb(0, 4):int()
  if size < 10 or size > proto.prefs.largest or not looks_like_request(tvb) then return false end
  local length = tvb(12, 2):int()
  if length > 0 then
    local id = tvb(14, math.min(length, tvb:len() - 14)):string()
    if tvb:len() < SIZE_BYTES + size then return id:find("^[%g ]+$") ~= nil end
    return not id:find("%c") and is_readable(tvb, size)
  end
  -- Without a client id, which is null then, only a frame that ends where the bytes end, and that can be read,
  -- tells a request from other numbers. An empty id is not enough: messages of zeros have one.
  if length == 0 or tvb:len() ~= SIZE_BYTES + size then return false end
  return is_readable(tvb, size)
end

local function heuristic(tvb, pinfo, tree)
  if not begins_with_request(tvb) then return false end
  learned[stream_number()] = pinfo.dst_port
  pinfo.conversation = proto
  proto.dissector(tvb, pinfo, tree)
  return true
end

proto:register_heuristic("tcp", heuristic)

-- TLS on any port, if the secrets are known. What follows the first request belongs to its connection, of
-- which TLS remains the dissector.
local function tls_heuristic(tvb, pinfo, tree)
  if not learned[stream_number()] then
    if not begins_with_request(tvb) then return false end
    learned[stream_number()] = pinfo.dst_port
  end
  proto.dissector(tvb, pinfo, tree)
  return true
end

proto:register_heuristic("tls", tls_heuristic)

local tcp_ports, tls_ports = "", ""

local function claim_ports()
  local tcp, tls = DissectorTable.get("tcp.port"), DissectorTable.get("tls.port")
  if tcp_ports ~= "" then tcp:remove(tcp_ports, proto) end
  if tls_ports ~= "" then tls:remove(tls_ports, proto) end
  tcp_ports, tls_ports = proto.prefs.ports, proto.prefs.tls_ports
  if tcp_ports ~= "" then tcp:add(tcp_ports, proto) end
  if tls_ports ~= "" then tls:add(tls_ports, proto) end
end

proto.prefs_changed = claim_ports
claim_ports()
