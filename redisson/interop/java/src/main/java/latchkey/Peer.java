package latchkey;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Does to Redisson's objects what it is told, one JSON object a line on standard input, and answers each with one JSON
 * line on standard output, in the order in which the answers come.
 *
 * <pre>
 * {"id":1,"client":"a","config":{"singleServerConfig":{"address":"redis://127.0.0.1:6379"}}}   makes client a
 * {"id":2,"client":"a","thread":"t1","call":[["getLock","order:1"],["tryLock",3000,"MILLISECONDS"]]}
 * {"id":3,"client":"a","thread":"t2","call":[["getMultiLock",[["getLock","x"]],[["getLock","y"]]],["lock"]]}
 * {"id":4,"client":"a","thread":"t2","call":[["getRedLock",["a",["getLock","x"]],["b",["getLock","x"]]],["lock"]]}
 * {"id":5,"client":"a"}                                                                         shuts client a down
 * {"id":6,"client":"b","setnx":"127.0.0.1:6379"}                                                makes client b, a Setnx
 * </pre>
 *
 * A call is a chain of methods: the first is the client's, each next one that of the result before it, and an argument
 * that is an array is a chain as well, of another client if it begins with the name of one. All results but the last are
 * kept, so that the same words mean the same object. Commands that name the same thread run in that thread, one after the
 * other; others run at once. The answer has "value" or "class" and "error" of what was thrown, "at", when that was in
 * microseconds since 1970, and "nanos", how long it took. A client that is made with a "prefix" has a name mapper, which puts
 * it before each name.
 *
 * <p>It goes by names alone, so that it compiles and runs with every version of Redisson.
 */
public final class Peer {
    private static final Gson JSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final Executor anyThread = Executors.newCachedThreadPool();
    private final Map<String, Executor> threads = new ConcurrentHashMap<>();
    private final Map<String, Object> clients = new ConcurrentHashMap<>(); // each a RedissonClient or a Setnx
    private final Map<String, Object> objects = new ConcurrentHashMap<>();

    public static void main(String[] args) throws IOException {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            new Peer().listen(in);
        } finally {
            Runtime.getRuntime().halt(0); // whoever gave the commands is gone; so are we, with nothing tidied up
        }
    }

    private void listen(BufferedReader in) throws IOException {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject command = JsonParser.parseString(line).getAsJsonObject();
            threadOf(command).execute(() -> obey(command));
        }
    }

    private Executor threadOf(JsonObject command) {
        if (!command.has("thread")) {
            return anyThread;
        }
        String name = command.get("thread").getAsString();
        return threads.computeIfAbsent(name, n -> Executors.newSingleThreadExecutor(r -> new Thread(r, n)));
    }

    private void obey(JsonObject command) {
        JsonObject answer = new JsonObject();
        answer.add("id", command.get("id"));
        long start = System.nanoTime();
        try {
            answer.add("value", json(run(command)));
        } catch (Throwable thrown) {
            Throwable cause = cause(thrown);
            answer.addProperty("class", cause.getClass().getName());
            answer.addProperty("error", messages(cause));
        }
        answer.addProperty("nanos", System.nanoTime() - start);
        answer.addProperty("at", ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()));
        synchronized (out) {
            out.println(JSON.toJson(answer));
            out.flush();
        }
    }

    private Object run(JsonObject command) throws Exception {
        String name = command.get("client").getAsString();
        if (command.has("config")) {
            Config config = Config.fromYAML(command.get("config").toString());
            if (command.has("prefix")) {
                mapNames(config, command.get("prefix").getAsString());
            }
            clients.put(name, Redisson.create(config));
            return null;
        }
        if (command.has("setnx")) {
            clients.put(name, new Setnx(command.get("setnx").getAsString()));
            return null;
        }
        if (!command.has("call")) {
            close(clients.remove(name));
            return null;
        }
        return call(name, command.getAsJsonArray("call"));
    }

    private static void close(Object client) {
        if (client instanceof RedissonClient redisson) {
            redisson.shutdown();
        } else {
            ((Setnx) client).close();
        }
    }

    /** Names begin with the prefix in Redis. The interface of a mapper is in another package since version 4. */
    private static void mapNames(Config config, String prefix) throws Exception {
        Method setter = Arrays.stream(Config.class.getMethods())
                .filter(m -> m.getName().equals("setNameMapper"))
                .findAny()
                .orElseThrow(() -> new NoSuchMethodException("Config.setNameMapper"));
        Class<?> mapper = setter.getParameterTypes()[0];
        setter.invoke(config, Proxy.newProxyInstance(mapper.getClassLoader(), new Class<?>[] {mapper}, (p, method, names) -> {
            String name = (String) names[0];
            return method.getName().equals("map") ? prefix + name : name.substring(prefix.length());
        }));
    }

    /** Calls the methods of a chain one after the other and waits for the last one's result, if it is a future. */
    private Object call(String client, JsonArray chain) throws Exception {
        Object target = clients.get(client);
        StringBuilder words = new StringBuilder(client);
        for (int i = 0; i < chain.size(); i++) {
            JsonArray step = chain.get(i).getAsJsonArray();
            Object known = objects.get(words.append(step).toString());
            if (known == null) {
                known = invoke(client, target, step);
                if (i < chain.size() - 1) {
                    Object first = objects.putIfAbsent(words.toString(), known);
                    known = first == null ? known : first;
                }
            }
            target = known;
        }
        return target instanceof Future<?> future ? future.get() : target;
    }

    private Object invoke(String client, Object target, JsonArray step) throws Exception {
        Object[] arguments = new Object[step.size() - 1];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = argument(client, step.get(i + 1));
        }
        return Arguments.invoke(target, step.get(0).getAsString(), arguments);
    }

    /** A plain value, or what a chain leads to, of another client if it begins with the name of one. */
    private Object argument(String client, JsonElement e) throws Exception {
        if (!e.isJsonArray()) {
            return Arguments.value(e);
        }
        JsonArray chain = e.getAsJsonArray();
        if (chain.get(0).isJsonArray()) {
            return call(client, chain);
        }
        JsonArray rest = chain.deepCopy();
        return call(rest.remove(0).getAsString(), rest);
    }

    private static JsonElement json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Number || value instanceof Iterable) {
            return JSON.toJsonTree(value);
        }
        return JSON.toJsonTree(value.toString());
    }

    /** The message, with those of the causes. */
    private static String messages(Throwable thrown) {
        StringBuilder all = new StringBuilder(String.valueOf(thrown.getMessage()));
        for (Throwable t = thrown.getCause(); t != null; t = t.getCause()) {
            all.append("; ").append(t);
        }
        return all.toString();
    }

    private static Throwable cause(Throwable thrown) {
        while (thrown.getCause() != null
                && (thrown instanceof InvocationTargetException || thrown instanceof ExecutionException)) {
            thrown = thrown.getCause();
        }
        return thrown;
    }
}
